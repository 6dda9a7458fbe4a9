"""Topics of `principals`: one agent's own news, and the facility's."""

from portal.core import topics
from principals import permissions
from principals.actors import Actor
from principals.models import Agent


def _may_hear_agent(actor: Actor, key: str) -> bool:
    return key.isdecimal() and len(key) < 19 and Agent.objects.visible_to(actor).filter(pk=int(key)).exists()


def _own_agents(actor: Actor) -> list[str]:
    """An agent hears of itself; a person of the agents they answer for; staff ask for what they want."""
    if actor.agent is not None:
        return [f"agent:{actor.agent.pk}"]
    if actor.user is None:
        return []
    return [f"agent:{pk}" for pk in Agent.objects.filter(owner=actor.user).order_by("pk").values_list("pk", flat=True)]


def _may_hear_facility(actor: Actor, key: str) -> bool:
    return permissions.can(actor, "facility.look")


AGENT = topics.TopicKind(
    name="agent",
    describe="Changes of one agent (key: its id): status, holds, tokens.",
    authorise=_may_hear_agent,
    default_topics=_own_agents,
)
FACILITY = topics.TopicKind(
    name="facility",
    describe="News of the whole facility (key: an app, as `facility:principals`), for those who look at all of it.",
    authorise=_may_hear_facility,
)


def register() -> None:
    """Make the kinds known to whoever serves live events."""
    topics.register(AGENT)
    topics.register(FACILITY)

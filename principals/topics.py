"""Topics of `principals`: one agent's own news, and the facility's."""

from portal.core import topics
from principals import permissions
from principals.actors import Actor
from principals.models import Agent, Lab


def _is_id(key: str) -> bool:
    return key.isdecimal() and len(key) < 19


def _may_hear_agent(actor: Actor, key: str) -> bool:
    return _is_id(key) and Agent.objects.visible_to(actor).filter(pk=int(key)).exists()


def _own_agents(actor: Actor) -> list[str]:
    """An agent hears of itself; a person of the agents they answer for; staff ask for what they want."""
    if actor.agent is not None:
        return [f"agent:{actor.agent.pk}"]
    if actor.user is None:
        return []
    return [f"agent:{pk}" for pk in Agent.objects.filter(owner=actor.user).order_by("pk").values_list("pk", flat=True)]


def _may_hear_facility(actor: Actor, key: str) -> bool:
    return permissions.can(actor, "facility.look")


def _may_hear_user(actor: Actor, key: str) -> bool:
    return actor.is_person and actor.user is not None and key == str(actor.user.pk)


def _oneself(actor: Actor) -> list[str]:
    return [f"user:{actor.user.pk}"] if actor.is_person and actor.user is not None else []


def _may_hear_lab(actor: Actor, key: str) -> bool:
    return actor.is_person and _is_id(key) and Lab.objects.visible_to(actor).filter(pk=int(key)).exists()


def _own_labs(actor: Actor) -> list[str]:
    return [f"lab:{pk}" for pk in sorted(actor.member_lab_ids)] if actor.is_person else []


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
USER = topics.TopicKind(
    name="user",
    describe="News for one person (key: their id): holds, trials, lessons. Agents do not hear it.",
    authorise=_may_hear_user,
    default_topics=_oneself,
)
NOTICES = topics.TopicKind(
    name="notices",
    describe="What one person is told (key: their id), as on their page of notices. Agents do not hear it.",
    authorise=_may_hear_user,
    default_topics=lambda actor: [topic.replace("user:", "notices:") for topic in _oneself(actor)],
)
LAB = topics.TopicKind(
    name="lab",
    describe="News of one lab (key: its id) for its people: agents, trials, lessons. Agents do not hear it.",
    authorise=_may_hear_lab,
    default_topics=_own_labs,
)


def register() -> None:
    """Make the kinds known to whoever serves live events."""
    for kind in (AGENT, FACILITY, USER, NOTICES, LAB):
        topics.register(kind)

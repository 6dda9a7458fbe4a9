"""What waits on people's desks in the demo: a policy to accept, an appeal, a hand-over, a session to claim."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final

from policies import services as policy_services
from portal.core import clock
from portal.demo import cast
from portal.demo.history import Act, Stage, agent_named, person
from principals import events, permissions
from principals import services as principal_services
from principals.models import Agent, AgentSession, AgentToken, Hold, SessionCheckIn, User
from principals.services.sessions.checkins import Beginning

_GRACE_DAYS: Final = 14
_ACCEPTED_BY: Final = ("u0421", "u0102", "u0377", "u0611", "u0682")  # the others are asked and have time
_CHECKS_IN: Final = "okafor-forcefield"
_HANDED_OVER: Final = "okafor-analysis"
_APPEALED: Final = "vesterholt-sampler"


def acts(stage: Stage) -> Iterator[Act]:
    """Tell of the newest version of the policy, and of what people asked of each other in the last days."""
    yield Act(stage.now - timedelta(days=6), _publish)
    yield Act(stage.now - timedelta(days=6), policy_services.remind_of_aup)
    for place, login in enumerate(_ACCEPTED_BY):
        yield Act(stage.now - timedelta(days=5) + timedelta(hours=7 * place), partial(_accept, login))
    yield Act(stage.now - timedelta(hours=30), _appeal)
    yield Act(stage.now - timedelta(hours=20), _hand_over)
    yield Act(stage.now - timedelta(hours=3), _draft)


def use_sessions(stage: Stage) -> None:
    """Leave a session to be claimed; let an agent check one in on a host that is watched."""
    _leave_to_nobody()
    token = AgentToken.objects.select_related("agent__owner", "agent__lab").get(agent__name=_CHECKS_IN)
    principal_services.check_in(
        actor=permissions.actor_for_agent(token),
        beginning=Beginning(
            harness="claude-code", host="login03", pid=48_213, cluster=stage.cluster.name, directory="membrane",
            harness_version="2.1.4",
        ),
    )  # fmt: skip


def _leave_to_nobody() -> None:
    """Tie a late session to no agent, as a collector leaves one that it saw before the agent was registered."""
    session = AgentSession.objects.filter(agent=agent_named(_CHECKS_IN)).exclude(ended=None).order_by("-ended")[0]
    AgentSession.objects.filter(pk=session.pk).update(agent=None)
    events.sessions_adopted.send(Agent, session_ids=[session.pk])


def beat() -> None:
    """Let the open check-ins of the demo go on."""
    for row in SessionCheckIn.objects.filter(ended=None).select_related("agent"):
        token = AgentToken.objects.select_related("agent__owner", "agent__lab").filter(agent=row.agent).first()
        if token is not None:
            principal_services.beat(actor=permissions.actor_for_agent(token), public_id=row.public_id)


def _changed(words: dict[str, str], *, version: str, effective: str, grace_days: int) -> str:
    source = policy_services.current_aup().source
    head = f'version = "{version}"\ntitle = "Acceptable use of coding agents"\neffective = {effective}\n'
    rest = source[source.index("[[clause]]") :]
    for before, after in words.items():
        rest = rest.replace(before, after)
    return f"{head}grace_days = {grace_days}\n\n{rest}"


def _publish() -> None:
    day = clock.now().date().isoformat()
    policy_services.publish_aup(
        actor=person(cast.STAFF),
        source=_changed(
            {"at most 6 scheduler": "at most 4 scheduler", "At most 6 scheduler": "At most 4 scheduler",
             "value = 6\n": "value = 4\n"},
            version=day, effective=day, grace_days=_GRACE_DAYS,
        ),
    )  # fmt: skip


def _accept(login: str) -> None:
    policy_services.accept_aup_for_mine(actor=person(login), version=policy_services.current_aup().version)


def _appeal() -> None:
    agent = agent_named(_APPEALED)
    hold = Hold.objects.filter(subject_kind="agent", subject_id=agent.pk, lifted_at=None).order_by("pk")[0]
    principal_services.file_hold_appeal(
        actor=person(agent.owner.username), hold=hold,
        reason="It asked while the event stream was away, and backed off afterwards. The log is in our folder.",
    )  # fmt: skip


def _hand_over() -> None:
    agent = agent_named(_HANDED_OVER)
    principal_services.ask_handover(
        actor=person(agent.owner.username), agent=agent, taker=User.objects.get(username="u0398")
    )


def _draft() -> None:
    staff = person(cast.STAFF)
    draft = policy_services.start_aup_draft(actor=staff, pack="newest")
    day = (clock.now() + timedelta(days=30)).date().isoformat()
    source = _changed(
        {"value = 1\n": "value = 2\n", "One agent session per person": "Two agent sessions per person",
         "Run one session per person": "Run two sessions per person"},
        version=day, effective=day, grace_days=30,
    )  # fmt: skip
    policy_services.change_aup_draft(actor=staff, draft=draft, source=source)

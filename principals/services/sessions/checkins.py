"""A harness checks in when it starts a session, beats while it goes on, and says when it ends.

What it says is a declared session (`recording`): where a collector sees the same one it is one row.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Count, QuerySet

from portal.core import audit, clock
from portal.core.errors import Conflict, Invalid, NotAllowed, NotFound
from principals import events
from principals.actors import Actor
from principals.engine.concurrency import Limit, Verdict, judge_all
from principals.models import Agent, AgentSession, Cluster, ClusterUser, SessionCheckIn, User
from principals.services.sessions.recording import DeclaredSession, may_work_there, record_sessions
from principals.session_limits import session_limits

SOURCE: Final = "check-in"
AT_ONCE: Final = 200  # ended in one go of the sweep
MOST_OPEN: Final = 200  # of an agent, jobs too


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What a harness says of a session that it starts. Empty `cluster` and `login`: the only ones there are."""

    harness: str
    host: str
    pid: int
    cluster: str = ""
    login: str = ""
    harness_version: str = ""
    model: str = ""
    directory: str = ""  # a label, not a path
    raw_job_id: int | None = None


@dataclass(frozen=True, slots=True)
class OnNode:
    """How many sessions of a person are open on a node: checked in, and seen by a collector."""

    declared: int
    seen: int


@dataclass(frozen=True, slots=True)
class CheckedIn:
    """A check-in, with what is open on its node and what was judged of it."""

    row: SessionCheckIn
    on_node: OnNode
    verdict: Verdict


def session_limit() -> Limit:
    """Return the smallest limit of sessions for a person on a login node: of the setting and the policy's clause."""
    return next(iter(session_limits()), Limit(0))


def check_in(*, actor: Actor, beginning: Beginning) -> CheckedIn:
    """Note that a session of the agent begins now.

    Errors: `NotAllowed` for anybody but an agent; `Invalid` for another harness, an unknown cluster or login name;
    `Conflict` on a host or in hours that it did not declare, and above the site's limit where that binds.
    """
    agent = _agent(actor)
    login = _login_of(agent, beginning)
    now = clock.now()
    _require_declared(agent, beginning, now)
    with transaction.atomic():
        login.cluster.lock()  # of two at once the second sees the first
        verdict = Verdict()
        if agent.check_ins.filter(ended=None).count() >= MOST_OPEN:
            raise Conflict(
                f"{MOST_OPEN} sessions of {agent.name} are open.", code="too_many_sessions",
                remedy="End those that are over with POST /api/v1/sessions/ID/end.",
            )  # fmt: skip
        if beginning.raw_job_id is None:
            before = on_node(agent.owner, login.cluster, beginning.host)
            verdict = judge_all(session_limits(), declared=before.declared, seen=before.seen, host=beginning.host)
            if verdict.refusal:
                raise Conflict(verdict.refusal, code="too_many_sessions", remedy=verdict.remedy)
        started = _free_second(login, beginning.host, now.replace(microsecond=0))
        recorded = record_sessions(cluster=login.cluster, sessions=[_declared(agent, login, beginning, started)])
        row = SessionCheckIn.objects.create(
            agent=agent, session=recorded[0].row, cluster_user=login, host=beginning.host, pid=beginning.pid,
            raw_job_id=beginning.raw_job_id, harness_version=beginning.harness_version, model=beginning.model,
            directory=beginning.directory, started=started, last_beat=now,
        )  # fmt: skip
        events.sessions_adopted.send(Agent, session_ids=[row.session_id])
        audit.record(
            actor=actor.ref, verb="session.check_in", object_kind="agent", object_id=agent.pk, object_label=agent.name,
            lab_id=agent.lab_id, after={"session": row.public_id, "host": row.host, "warning": verdict.warning},
        )  # fmt: skip
        return CheckedIn(row, on_node(agent.owner, login.cluster, row.host), verdict)


def beat(*, actor: Actor, public_id: str) -> SessionCheckIn:
    """Note that a session goes on. Errors: `NotFound`; `Conflict` once it has ended."""
    row = _own(actor, public_id)
    now = clock.now()
    if not SessionCheckIn.objects.filter(pk=row.pk, ended=None).update(last_beat=now):
        raise Conflict(
            f"This session ended: {row.get_how_ended_display().lower()}.", code="session_ended",
            remedy="Check in again with POST /api/v1/sessions.",
        )  # fmt: skip
    row.last_beat = now
    return row


def check_out(*, actor: Actor, public_id: str) -> SessionCheckIn:
    """Note that a session has ended; one that had ended stays as it was."""
    row = _own(actor, public_id)
    with transaction.atomic():
        if row.ended is None:
            _end(row, clock.now(), SessionCheckIn.End.SAID)
    return row


def end_silent() -> int:
    """End the sessions that have not beaten for the site's time, at their last beat; return how many."""
    latest = clock.now() - timedelta(seconds=settings.SESSION_SILENT_S)
    silent = SessionCheckIn.objects.filter(ended=None, last_beat__lt=latest).order_by("last_beat")
    ended = 0
    for row in silent.select_related("cluster_user__cluster", "session", "agent")[:AT_ONCE]:
        with transaction.atomic():
            ended += _end(row, row.last_beat, SessionCheckIn.End.SILENT)
    return ended


def live_of(agent: Agent) -> QuerySet[SessionCheckIn]:
    """Return the check-ins of an agent that go on, newest first."""
    return _by_owner(agent).filter(ended=None).select_related("session", "cluster_user__cluster").order_by("-started")


def on_node(person: User, cluster: Cluster, host: str) -> OnNode:
    """Count a person's open sessions on a node, jobs apart."""
    return on_nodes(person, cluster, [host])[host]


def on_nodes(person: User, cluster: Cluster, hosts: list[str]) -> dict[str, OnNode]:
    """Count a person's open sessions on some nodes, jobs apart: two queries."""
    mine = {"cluster_user__user": person, "cluster_user__cluster": cluster, "host__in": hosts, "ended": None}
    said = SessionCheckIn.objects.filter(raw_job_id=None, **mine)
    seen = AgentSession.objects.filter(kind=AgentSession.Kind.AGENT, **mine).exclude(process="")
    seen = seen.exclude(place=AgentSession.Place.JOB)
    counts = [dict(rows.order_by().values_list("host").annotate(number=Count("pk"))) for rows in (said, seen)]
    return {host: OnNode(counts[0].get(host, 0), counts[1].get(host, 0)) for host in hosts}


def _by_owner(agent: Agent) -> QuerySet[SessionCheckIn]:
    """Return an agent's check-ins under its owner's login names: those of who had it before are not for it to see."""
    return SessionCheckIn.objects.filter(agent=agent, cluster_user__user=agent.owner_id)


def _agent(actor: Actor) -> Agent:
    if actor.agent is None:
        raise NotAllowed("Only an agent checks in.", code="not_an_agent", remedy="Use an agent's token.")
    return actor.agent


def _own(actor: Actor, public_id: str) -> SessionCheckIn:
    rows = _by_owner(_agent(actor)).filter(public_id=public_id)
    row = rows.select_related("cluster_user__cluster", "session", "agent").first()
    if row is None:
        raise NotFound("No such session of this agent.", remedy="Check in with POST /api/v1/sessions.")
    return row


def _login_of(agent: Agent, beginning: Beginning) -> ClusterUser:
    """Return the login name of the agent's owner that a session runs under."""
    known = ClusterUser.objects.filter(user=agent.owner_id).select_related("cluster").order_by("cluster__name", "login")
    if beginning.cluster:
        known = known.filter(cluster__in=Cluster.objects.named(beginning.cluster))
    fitting = [each for each in known if beginning.login in ("", each.login)]
    if not fitting:
        raise Invalid(
            f"{agent.owner.username} has no such login name there.", code="login_unknown",
            remedy="Name a cluster and a login name of the person the agent acts for, or ask staff to tie it to them.",
            extra={"field": "login"},
        )  # fmt: skip
    if len(fitting) > 1:
        raise Invalid(
            "Several login names fit.", code="login_ambiguous", remedy="Name the cluster and the login name.",
            extra={"field": "login"},
        )  # fmt: skip
    return fitting[0]


def _require_declared(agent: Agent, beginning: Beginning, now: datetime) -> None:
    """Refuse what the agent's registration does not say."""
    if beginning.harness != agent.harness:
        raise Invalid(
            f"{agent.name} is registered for {agent.harness}.", code="harness_differs",
            remedy="Register an agent of this harness, and check in with its token.", extra={"field": "harness"},
        )  # fmt: skip
    if not may_work_there(agent, AgentSession(host=beginning.host, place=_place(beginning))):
        raise Conflict(
            f"{agent.name} may not work on {beginning.host}.", code="host_not_allowed",
            remedy=f"Use {', '.join(agent.hosts)}, or register an agent that may.",
        )  # fmt: skip
    hours = agent.working_hours
    if hours is not None and not hours.covers(now):
        raise Conflict(
            f"{agent.name} works {hours.words}.", code="outside_hours",
            remedy="Start it in those hours, or register an agent for others.",
        )  # fmt: skip


def _place(beginning: Beginning) -> str:
    return AgentSession.Place.LOGIN if beginning.raw_job_id is None else AgentSession.Place.JOB


def _free_second(login: ClusterUser, host: str, started: datetime) -> datetime:
    """Return a second in which no other session of the same was checked in: rows know no finer time."""
    taken = set(SessionCheckIn.objects.filter(
        cluster_user=login, host=host, started__gte=started - timedelta(seconds=60)
    ).values_list("started", flat=True))  # fmt: skip
    while started in taken:
        started -= timedelta(seconds=1)
    return started


def _declared(
    agent: Agent, login: ClusterUser, beginning: Beginning, started: datetime, ended: datetime | None = None
) -> DeclaredSession:
    return DeclaredSession(
        login=login.login, host=beginning.host, kind=AgentSession.Kind.AGENT, harness=agent.harness, started=started,
        ended=ended, source=SOURCE, place=_place(beginning), raw_job_id=beginning.raw_job_id, agent_name=agent.name,
    )  # fmt: skip


def _end(row: SessionCheckIn, at: datetime, how: str) -> bool:
    """End a check-in, and the declared half of its session; say whether this call did."""
    if not SessionCheckIn.objects.filter(pk=row.pk, ended=None).update(ended=at, how_ended=how):
        return False
    row.ended, row.how_ended = at, how
    login = row.cluster_user
    said = Beginning(harness=row.agent.harness, host=row.host, pid=row.pid, raw_job_id=row.raw_job_id)
    record_sessions(cluster=login.cluster, sessions=[_declared(row.agent, login, said, row.started, at)])
    events.sessions_adopted.send(Agent, session_ids=[row.session_id])
    return True

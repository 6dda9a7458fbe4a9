"""Sessions as collectors and harnesses declare them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from django.db import transaction
from django.db.models import Q

from portal.core import clock
from portal.core.rows import create_rows
from principals import events
from principals.models import (
    Agent,
    AgentSession,
    ClaimedSession,
    Cluster,
    ClusterUser,
    LabMembership,
    SessionDeclaration,
)
from principals.services.directory import Directory
from principals.services.sessions import pairing
from principals.services.sessions.pairing import Span

# Why a session of a harness belongs to no registered agent, and what would change that for the next one.
UNREGISTERED: Final = {
    "login_unclaimed": "Nobody is known here under this login name: operators add them by manage.py add_person.",
    "no_agent": "This person has no agent of this harness: they register one on My lab.",
    "host_not_allowed": "No agent of this person and harness may use this host: they register one that may.",
    "agent_key_differs": "The site's list of SSH keys names an agent that is none of this person and harness, or may "
    "not use this host: operators mend agent_keys in the collector's settings.",
    "several_agents": "Several agents of this person and harness may use this host: they retire all but one of them, "
    "or register them for different hosts.",
    "declared_before": "This session was over, or might have been another agent's or another lab's, when the agent was "
    "registered: the next one finds it.",
}
# Its host is no login node: the node that Slurm gave, or the gateway itself.
_ON_NO_LOGIN_NODE: Final = (AgentSession.Place.JOB, AgentSession.Place.GATEWAY)
_GROUP: Final = ("cluster_user_id", "host", "kind", "harness")  # sessions of which one may be a half of another
_NATURAL: Final = ("cluster", "cluster_user_id", "host", "kind", "harness", "started", "process")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSession:
    """A session as it arrives: who (login name), where, with which harness, from when to when.

    `process` is its root process as a collector knows it (`AgentSession.process`), and `last_seen` when it last did
    something; both are empty where somebody declares it. `evidence` is as the row has it; `agent_name` the registered
    agent that it is said to be of, where its evidence says so.
    """

    login: str
    host: str
    kind: str
    harness: str
    started: datetime
    ended: datetime | None = None
    campaign: str = ""
    source: str = "declared"
    process: str = ""
    last_seen: datetime | None = None
    place: str = AgentSession.Place.LOGIN
    raw_job_id: int | None = None  # of the job that it runs in
    evidence: str = ""
    agent_name: str = ""


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """What became of one declared session: `created`, `changed`, `unchanged`, or `refused`; `old_end` as it was before.

    Refused is a process that is known under another login name or harness: `row` is that one then.
    """

    row: AgentSession
    outcome: str
    old_end: datetime | None = None
    spans: tuple[Span, ...] = ()  # of rows whose jobs may be somebody else's now, the row's own time apart
    unregistered: str = ""  # why it belongs to no registered agent: a key of `UNREGISTERED`


def record_sessions(*, cluster: Cluster, sessions: Iterable[DeclaredSession]) -> list[RecordedSession]:
    """Write declared sessions, one row for each (user, host, kind, harness, start); a later end updates the row.

    A session of a harness is tied, when it is first declared, to the one agent of that person and harness that is not
    retired and may use that host (in jobs and behind gateways: any); where none or several fit it stays unregistered,
    with the reason. One that goes on without an agent is tied later, to an agent that is registered meanwhile: then
    (`adopt_sessions`), or when it is told again. Once tied it stays so. A session is a sight of its agent.

    What a collector tells is known by its process alone: the start that it reckons may differ by a second from one
    time to the next. What it sees and a harness declares is one row, with the collector's times and the declared
    campaign (`principals.services.sessions.pairing`).
    """
    declared = list(sessions)
    with transaction.atomic():
        cluster.lock()
        recorder = _Recorder(cluster, declared)
        recorded = [recorder.record(session) for session in declared]
        recorder.write()
        _note_seen(recorded)
    return recorded


def adopt_sessions(agent: Agent) -> int:
    """Tie the sessions that go on without an agent to one just registered, where it fits; return how many.

    What is over stays as it was: for which lab it was, nobody can tell any more. Rollups and reports know no agents
    and stay; jobs follow, for the news of it goes to `telemetry`. Call it in the transaction that registers the agent.
    """
    waiting = AgentSession.objects.filter(
        kind=AgentSession.Kind.AGENT, harness=agent.harness, agent=None, ended=None, cluster_user__user=agent.owner_id
    )
    fitting = [row.pk for row in waiting.only("kind", "harness", "host", "place", "cluster_user", "received", "ended")
               if _find_agent(row.cluster_user_id, row)[0] == agent and _may_be_adopted(row, agent)]  # fmt: skip
    adopted = AgentSession.objects.filter(pk__in=fitting, agent=None).update(agent=agent)
    if adopted:
        events.sessions_adopted.send(Agent, session_ids=fitting)
    return adopted


def _may_be_adopted(row: AgentSession, agent: Agent) -> bool:
    """Say whether a session may be given to an agent that fits it now: it goes on, and no other could be its.

    One that was retired since the session was first declared may be whose process goes on. Of somebody in several labs
    it may be for any of them: only they themselves say for which, by registering an agent of their own in one.
    """
    if row.ended is not None or _may_be_for_another_lab(row, agent):
        return False
    if ClaimedSession.objects.filter(session=row.pk).exclude(claim__undone=None).exists():  # its person said: not its
        return False
    rivals = Agent.objects.filter(owner=agent.owner_id, harness=agent.harness, status=Agent.Status.RETIRED)
    return not any(may_work_there(other, row) for other in rivals.filter(status_changed__gte=row.received))


def _may_be_for_another_lab(row: AgentSession, agent: Agent) -> bool:
    """Say whether a session came before an agent that others registered for somebody who is in another lab too."""
    if agent.requested_by_id == agent.owner_id or agent.created < row.received:
        return False
    return LabMembership.objects.filter(user=agent.owner_id).exclude(lab=agent.lab_id).exists()


def _note_seen(recorded: Iterable[RecordedSession]) -> None:
    """Let registered agents be seen until their sessions ended; an open one is seen as it is declared."""
    now, seen = clock.now(), dict[int, datetime]()
    for each in recorded:
        if each.row.agent_id is not None and each.outcome != "refused":
            until = min(each.row.ended or each.row.last_seen or now, now)
            seen[each.row.agent_id] = max(seen.get(each.row.agent_id, until), until)
    for agent_id, until in seen.items():
        unseen = Q(last_seen=None) | Q(last_seen__lt=until)
        Agent.objects.filter(unseen, pk=agent_id).update(last_seen=until)


_Group: TypeAlias = tuple[int, str, str, str]
_Start: TypeAlias = tuple[_Group, int]  # seconds, as rows know them


def _group_of(row: AgentSession) -> _Group:
    return row.cluster_user_id, row.host, row.kind, row.harness


def _start_of(row: AgentSession) -> _Start:
    return _group_of(row), int(row.started.timestamp())


class _Recorder:
    """One call's look-ups: names, processes that are known, and whose a harness of somebody on a host is.

    A collector tells every minute of the same sessions: they cost a query together, not some each.
    """

    def __init__(self, cluster: Cluster, declared: Sequence[DeclaredSession]) -> None:
        self._cluster = cluster
        self._directory = Directory(cluster)
        processes = {each.process for each in declared if each.process}
        rows = AgentSession.objects.filter(cluster=cluster, process__in=processes) if processes else ()
        self._known = {(row.host, row.process, row.kind): row for row in rows}
        self._agents: dict[tuple[int, str, str, str, str, str], tuple[Agent | None, str]] = {}
        self._seen: dict[int, AgentSession] = {}
        alone = [each for each in declared if not each.process]
        self._halves, self._declared = self._look_up(alone) if alone else (set[_Group](), dict[_Start, AgentSession]())
        self._fresh: list[AgentSession] = []  # to be written together

    def _look_up(self, declared: Sequence[DeclaredSession]) -> tuple[set[_Group], dict[_Start, AgentSession]]:
        """Return where processes were seen that a declared session may be, and the rows of those declared before."""
        users = {self._directory.user_id(each.login) for each in declared}
        rows = AgentSession.objects.filter(cluster=self._cluster, cluster_user__in=users).order_by()
        seen = rows.exclude(process="").filter(host__in={each.host for each in declared})
        known = rows.filter(process="", started__in={each.started for each in declared})
        return set(seen.values_list(*_GROUP).distinct()), {_start_of(row): row for row in known}

    def record(self, declared: DeclaredSession) -> RecordedSession:
        """Write one session."""
        user_id = self._directory.user_id(declared.login)
        known = self._known.get((declared.host, declared.process, declared.kind)) if declared.process else None
        if known is not None and (known.cluster_user_id, known.harness) != (user_id, declared.harness):
            return RecordedSession(known, "refused", known.ended)
        if known is not None and known.agent_id is not None:
            return self._go_on(known, declared, None, "")
        agent, why = self._find_agent(user_id, declared)
        if known is not None:
            return self._go_on(known, declared, agent, why)
        row = self._row_of(user_id, declared, agent)
        if declared.process:
            self._write_fresh()
            return self._see(row, why)
        if _group_of(row) not in self._halves:
            return self._declare_alone(row, declared, agent, why)
        self._write_fresh()
        if (part := pairing.find_declaration(row)) is not None:
            return self._go_on_declared(part, declared, agent, why)
        return self._declare(row, declared, agent, why)

    def _row_of(self, user_id: int, declared: DeclaredSession, agent: Agent | None) -> AgentSession:
        return AgentSession(
            cluster=self._cluster, cluster_user_id=user_id, host=declared.host, kind=declared.kind,
            harness=declared.harness, started=declared.started, process=declared.process, ended=declared.ended,
            campaign=declared.campaign, source=declared.source, last_seen=declared.last_seen, agent=agent,
            place=declared.place, raw_job_id=declared.raw_job_id, evidence=declared.evidence,
        )  # fmt: skip

    def _see(self, row: AgentSession, why: str) -> RecordedSession:
        """Write a session that a collector saw for the first time: the row of the same declared one, if there is."""
        alone = pairing.find_alone(row)
        if alone is not None:
            spans = [pairing.put_on(alone, row)]
            row = alone
        else:
            row.save(force_insert=True)
            spans = pairing.settle([row])
        self._known[row.host, row.process, row.kind] = row
        self._halves.add(_group_of(row))
        return RecordedSession(row, "created", row.ended, tuple(spans), "" if row.agent_id else why)

    def _declare_alone(
        self, row: AgentSession, declared: DeclaredSession, agent: Agent | None, why: str
    ) -> RecordedSession:
        """Write a session that was declared where no process was seen that it could be: it has no half to look for."""
        start = _start_of(row)
        if (known := self._declared.get(start)) is not None:
            self._write_fresh()
            return self._go_on(known, declared, agent, why)
        self._declared[start] = row
        self._fresh.append(row)
        return RecordedSession(row, "created", row.ended, (), "" if row.agent_id else why)

    def _declare(self, row: AgentSession, declared: DeclaredSession, agent: Agent | None, why: str) -> RecordedSession:
        """Write a session that was declared and is not part of one that was seen."""
        key = {name: getattr(row, name) for name in _NATURAL}
        known = AgentSession.objects.filter(**key).first()
        if known is not None:
            return self._go_on(known, declared, agent, why)
        row.save(force_insert=True)
        spans = pairing.settle([row])
        part = pairing.find_declaration(row) if spans else None
        row = part.session if part else row
        return RecordedSession(row, "created", row.ended, tuple(spans), "" if row.agent_id else why)

    def _find_agent(self, user_id: int, declared: DeclaredSession) -> tuple[Agent | None, str]:
        name = declared.agent_name
        key = user_id, declared.kind, declared.harness, declared.host, declared.place, name
        if key not in self._agents:
            self._agents[key] = _find_agent(user_id, declared, name)
        return self._agents[key]

    def _go_on(self, row: AgentSession, declared: DeclaredSession, agent: Agent | None, why: str) -> RecordedSession:
        """Write what a session that is known says anew."""
        if row.agent_id is not None:
            why = ""
        elif agent is not None and not _may_be_adopted(row, agent):
            agent, why = None, "declared_before"
        old_end, changes = row.ended, _changes(row, declared, agent)
        for name, value in changes.items():
            setattr(row, name, value)
        if changes.keys() - {"last_seen"}:
            row.save(update_fields=list(changes))
            spans = pairing.settle([row]) if row.process and "ended" in changes else []
            return RecordedSession(row, "changed", old_end, tuple(spans), why)
        if changes:  # that it was seen again explains no job
            self._seen[row.pk] = row
        return RecordedSession(row, "unchanged", old_end, unregistered=why)

    def _go_on_declared(
        self, part: SessionDeclaration, declared: DeclaredSession, agent: Agent | None, why: str
    ) -> RecordedSession:
        """Write what is declared anew of a session that was seen: its times stay the collector's."""
        row = part.session
        if row.agent_id is not None:
            agent, why = None, ""
        elif agent is not None and not _may_be_adopted(row, agent):
            agent, why = None, "declared_before"
        told = {"ended": declared.ended, "campaign": declared.campaign}
        changes = {name: value for name, value in told.items() if value and value != getattr(part, name)}
        SessionDeclaration.objects.filter(pk=part.pk).update(**changes)
        mine: dict[str, Any] = {"campaign": changes["campaign"]} if "campaign" in changes else {}
        mine |= {"agent": agent} if agent else {}
        for name, value in mine.items():
            setattr(row, name, value)
        row.save(update_fields=list(mine))
        return RecordedSession(row, "changed" if changes or mine else "unchanged", row.ended, unregistered=why)

    def _write_fresh(self) -> None:
        create_rows(AgentSession, self._fresh)
        self._fresh.clear()

    def write(self) -> None:
        """Write what was left: new rows, and when sessions were last seen of which nothing else changed."""
        self._write_fresh()
        AgentSession.objects.bulk_update(self._seen.values(), ["last_seen"])


def _changes(row: AgentSession, declared: DeclaredSession, agent: Agent | None) -> dict[str, Any]:
    """Return what a session that is known says anew; one that was thought to be over may turn out to go on."""
    told = {"ended": declared.ended, "campaign": declared.campaign, "agent": None if row.agent_id else agent}
    changes: dict[str, Any] = {name: value for name, value in told.items() if value and value != getattr(row, name)}
    seen = declared.last_seen
    if seen is not None and (row.last_seen is None or seen > row.last_seen):
        changes["last_seen"] = seen
        if declared.ended is None and row.ended is not None and seen > row.ended:
            changes["ended"] = None
    return changes


def may_work_there(agent: Agent, session: DeclaredSession | AgentSession) -> bool:
    """Say whether an agent may have a session where one is: on its login nodes; in jobs, behind gateways anywhere."""
    return not agent.hosts or session.place in _ON_NO_LOGIN_NODE or session.host in agent.hosts


def _find_agent(
    cluster_user_id: int, declared: DeclaredSession | AgentSession, name: str = ""
) -> tuple[Agent | None, str]:
    """Return the agent that a session of a harness belongs to, or None and why; a shell belongs to none anyway.

    `name`: the one that it is said to be of.
    """
    if declared.kind != AgentSession.Kind.AGENT:
        return None, ""
    candidates = Agent.objects.filter(
        ~Q(status=Agent.Status.RETIRED), owner__cluster_users=cluster_user_id, harness=declared.harness
    )
    fitting = [agent for agent in candidates if may_work_there(agent, declared) and name in ("", agent.name)]
    if name and not fitting:
        return None, "agent_key_differs"
    if len(fitting) == 1:
        return fitting[0], ""
    if fitting:
        return None, "several_agents"
    if candidates:
        return None, "host_not_allowed"
    unclaimed = ClusterUser.objects.filter(pk=cluster_user_id, user=None).exists()
    return None, "login_unclaimed" if unclaimed else "no_agent"

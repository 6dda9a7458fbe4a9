"""Which parts of a batch are taken. Nothing of a person's own shells is, unless a study that runs names them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from portal.core import clock
from principals.models import AgentSession, Cluster
from principals.services import DeclaredSession
from telemetry.engine import activity_batches as parts
from telemetry.engine.activity_batches import (
    KIND_OF_DRIVER,
    Batch,
    MinutePart,
    SessionPart,
)
from telemetry.models import BaselineStudy
from telemetry.services import sessions as session_services
from telemetry.services.sessions import SessionOutcome

SOURCE: Final = "collector"
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Rejected:
    """A part that was not taken: of which list, its place there, and why."""

    part: str
    index: int
    reason: str

    @property
    def remedy(self) -> str:
        """Say what would make it pass."""
        return parts.REMEDIES.get(self.reason, "") or session_services.REMEDIES.get(self.reason, "")


class Known(NamedTuple):
    """A session of the batch as it is stored."""

    pk: int
    cluster_user_id: int


@dataclass(slots=True)
class Judgement:
    """What of a batch is taken, and what not; sessions are known by (id, kind), for a shell may become a harness."""

    batch: Batch
    cluster: Cluster
    study: BaselineStudy | None
    now: datetime = field(default_factory=clock.now)
    known: dict[tuple[str, str], Known] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)
    accepted: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, batch: Batch, cluster: Cluster) -> "Judgement":
        """Begin with a batch, and with the study that it names, if there is one."""
        study = BaselineStudy.objects.filter(cluster=cluster, name=batch.study).first() if batch.study else None
        return cls(batch, cluster, study)

    def reject(self, part: str, index: int, reason: str) -> None:
        """Note that a part is not taken."""
        self.rejected.append(Rejected(part, index, reason))

    def sift(self, part: str, given: Sequence[P], find_fault: Callable[[P], str]) -> list[P]:
        """Return the parts of one list that are taken; the others are noted."""
        taken = []
        for index, each in enumerate(given):
            if reason := find_fault(each):
                self.reject(part, index, reason)
            else:
                taken.append(each)
        self.accepted[part] = len(taken)
        return taken

    # --- sessions ---------------------------------------------------------------------------------------------
    def find_session_fault(self, session: SessionPart) -> str:
        """Say why a session is not taken; "" where it is."""
        if session.kind != "agent" and not self._is_studied(session.start, session.last):
            return "no_study"
        return parts.find_session_fault(session, self.now) or session_services.find_fault(self.declared(session))

    def declared(self, session: SessionPart) -> DeclaredSession:
        """Return a session as it is recorded."""
        batch = self.batch
        return DeclaredSession(
            login=session.user, host=batch.host, kind=session.kind, harness=session.harness, started=session.start,
            ended=session.end, source=SOURCE, process=batch.process_of(session.id), last_seen=session.last,
            place=session.place, raw_job_id=session.job,
            evidence=session.evidence, agent_name=session.agent,
        )  # fmt: skip

    def know(self, session: SessionPart, outcome: SessionOutcome) -> None:
        """Remember a session that was recorded."""
        if outcome.session_id is not None and outcome.cluster_user_id is not None:
            self.known[session.id, session.kind] = Known(outcome.session_id, outcome.cluster_user_id)

    def look_up(self) -> None:
        """Find the sessions that the batch names without sending them: one query."""
        batch = self.batch
        lists = (batch.minutes, batch.submissions, batch.polling, batch.loops)
        named = {each.session for one in lists for each in one if parts.is_session_id(each.session)}
        missing = named - {session for session, _ in self.known}
        if not missing:
            return
        processes = {batch.process_of(session): session for session in missing}
        rows = AgentSession.objects.filter(cluster=self.cluster, host=batch.host, process__in=processes)
        for process, kind, pk, user in rows.values_list("process", "kind", "pk", "cluster_user_id"):
            self.known[processes[process], kind] = Known(pk, user)

    # --- the rest ---------------------------------------------------------------------------------------------
    def find_minute_fault(self, part: MinutePart) -> str:
        """Say why a minute is not taken; "" where it is."""
        if part.session and part.driver == "human" and not self._is_studied(part.minute, part.minute):
            return "no_study"
        if fault := parts.find_minute_fault(part, self.batch, self.now):
            return fault
        return "session_unknown" if part.session and self.session_of(part) is None else ""

    def session_of(self, part: MinutePart) -> Known | None:
        """Return the session of a minute, None for a node's total."""
        return self.known.get((part.session, KIND_OF_DRIVER.get(part.driver, "")))

    def find_act_fault(self, session: str, first: datetime, last: datetime, fault: str) -> str:
        """Say why a submission or a loop of a session is not taken, `fault` apart; "" where it is."""
        if fault:
            return fault
        known = self.actor_of(session)
        if known is None:
            return "session_unknown"
        is_agent = (session, AgentSession.Kind.AGENT.value) in self.known
        return "" if is_agent or self._is_studied(first, last) else "no_study"

    def actor_of(self, session: str) -> Known | None:
        """Return the session of an act: the harness, where the process was a shell before it became one."""
        agent = self.known.get((session, AgentSession.Kind.AGENT.value))
        return agent or self.known.get((session, AgentSession.Kind.INTERACTIVE.value))

    def _is_studied(self, first: datetime, last: datetime) -> bool:
        return self.study is not None and self.study.covers(first, last)

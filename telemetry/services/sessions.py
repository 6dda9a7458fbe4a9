"""Sessions as collectors and harnesses declare them, and the jobs that they explain."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from django.db import transaction

from portal.core import audit, clock
from principals import services as principal_services
from principals.actors import Actor
from principals.engine.harnesses import harness_remedy, known_harnesses
from principals.models import Agent, AgentSession, Cluster
from principals.services import DeclaredSession, RecordedSession
from principals.services.sessions.pairing import Span
from telemetry import permissions
from telemetry.engine.attribution import CLOCK_SLACK_S
from telemetry.engine.redaction import is_secretless
from telemetry.models import DataGeneration, IngestBatch
from telemetry.services.attribution import Window, attribute_pending, reattribute
from telemetry.services.sources import note_source

SLICE: Final = 200  # sessions of one transaction
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)  # Slurm is younger
_CLOCKS_DIFFER: Final = timedelta(minutes=5)
_NAME: Final = re.compile(r"[^\s\x00-\x1f]{1,64}\Z")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}\Z")
REMEDIES: Final = {
    "user_invalid": "Send the login name as Slurm knows it: up to 64 characters without spaces.",
    "host_invalid": "Send the node's name: letters, digits, dots, dashes, up to 100 characters.",
    "harness_invalid": harness_remedy(),
    "unknown_harness": harness_remedy(),
    "harness_on_interactive": "Leave the harness out of a person's shell, or send the kind `agent`.",
    "secret_in_name": "Send names only; what looks like a secret is not kept.",
    "campaign_too_long": "Shorten the campaign to 100 characters.",
    "campaign_invalid": "Send the campaign as printable text without secrets.",
    "past_date": "Send a start after 1 January 2000.",
    "future_date": "Send times that are past; check the clock of the host.",
    "end_before_start": "Send an end that is not before the start, or null while it goes on.",
    "process_differs": "This process is known under another login name or harness; a session keeps its first.",
}


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """What became of one declared session: created, changed, unchanged, or rejected with a reason.

    `agent` is the name of the registered agent it belongs to; where a harness's belongs to none, `unregistered` is why.
    """

    outcome: str
    reason: str = ""
    session_id: int | None = None
    agent: str | None = None
    unregistered: str = ""
    cluster_user_id: int | None = None

    @property
    def remedy(self) -> str:
        """Say what would make a rejected session pass, or give the next one its agent; "" where nothing lacks."""
        return REMEDIES.get(self.reason, "") or principal_services.UNREGISTERED.get(self.unregistered, "")


@dataclass(frozen=True, slots=True)
class Declared:
    """The outcomes of one call, in the order of what was sent, and how many jobs were attributed anew meanwhile."""

    outcomes: list[SessionOutcome]
    jobs_changed: int


def declare_sessions(
    *, actor: Actor, cluster: Cluster, sessions: Sequence[DeclaredSession], source: str = "api"
) -> Declared:
    """Record declared sessions and attribute anew the jobs submitted in their old and new time.

    A slice of sessions commits with the jobs it explains; of very many jobs the last ones follow in chunks, by
    whoever comes first should this process end. Sending the same again changes nothing. Errors: `NotAllowed`.
    """
    permissions.require_feed(actor, "sessions", cluster.name)
    outcomes = [SessionOutcome("rejected", reason) for reason in map(find_fault, sessions)]
    good = [number for number, outcome in enumerate(outcomes) if not outcome.reason]
    jobs_changed = 0
    for numbers in _slices(good):
        with transaction.atomic():
            cluster.lock()
            results, changed = take_sessions(cluster, [sessions[number] for number in numbers])
            jobs_changed += changed
            _record(actor, cluster, source, results, changed)
        for number, result in zip(numbers, results, strict=True):
            outcomes[number] = result
    return Declared(outcomes, jobs_changed + attribute_pending(cluster=cluster))


def find_fault(session: DeclaredSession) -> str:
    """Say why a session cannot be taken; "" where it can."""
    if not _NAME.match(session.login):
        return "user_invalid"
    if not is_host(session.host):
        return "host_invalid"
    if fault := _find_harness_fault(session):
        return fault
    if not all(map(is_secretless, (session.login, session.host))):
        return "secret_in_name"
    if len(session.campaign) > 100:
        return "campaign_too_long"
    if not (session.campaign.isprintable() and is_secretless(session.campaign)):
        return "campaign_invalid"
    return _find_time_fault(session)


def is_host(name: str) -> bool:
    """Say whether a node may have that name."""
    return bool(_HOST.match(name))


def _find_harness_fault(session: DeclaredSession) -> str:
    """Refuse a harness nobody knows: two slugs of one program would leave their jobs with none."""
    if session.kind != AgentSession.Kind.AGENT:
        return "harness_on_interactive" if session.harness else ""
    if not session.harness:
        return "harness_invalid"
    return "" if session.harness in known_harnesses() else "unknown_harness"


def _find_time_fault(session: DeclaredSession) -> str:
    latest = clock.now() + _CLOCKS_DIFFER
    if session.started < EARLIEST:
        return "past_date"
    if session.started > latest or (session.ended is not None and session.ended > latest):
        return "future_date"
    if session.ended is not None and session.ended < session.started:
        return "end_before_start"
    return ""


def take_sessions(cluster: Cluster, sessions: Sequence[DeclaredSession]) -> tuple[list[SessionOutcome], int]:
    """Record sessions without fault, and attribute anew the jobs in their time, in the caller's transaction.

    Return one outcome for each, in their order, and how many jobs changed; of very many some are left for
    `attribute_pending`. At most `SLICE` at once, with the cluster's row locked.
    """
    recorded = principal_services.record_sessions(cluster=cluster, sessions=list(map(_whole_seconds, sessions)))
    changed = [each for each in recorded if each.outcome in ("created", "changed")]
    windows = [window for each in changed for window in _windows(each.row, each.old_end)]
    windows += windows_of(span for each in changed for span in each.spans)
    names = dict(Agent.objects.filter(pk__in={each.row.agent_id for each in recorded}).values_list("pk", "name"))
    if changed:
        DataGeneration.objects.start(cluster)
    outcomes = [_outcome_of(each, names) for each in recorded]
    return outcomes, reattribute(cluster=cluster, windows=windows)


def _outcome_of(recorded: RecordedSession, agents: Mapping[int, str]) -> SessionOutcome:
    if recorded.outcome == "refused":
        return SessionOutcome("rejected", "process_differs")
    row = recorded.row
    return SessionOutcome(
        recorded.outcome, session_id=row.pk, agent=agents.get(row.agent_id or 0),
        unregistered=recorded.unregistered, cluster_user_id=row.cluster_user_id,
    )  # fmt: skip


def _windows(row: AgentSession, old_end: datetime | None) -> Iterator[Window]:
    """Yield the submit times whose attribution a new or changed session may change; an open one has no last."""
    first_s = int(row.started.timestamp()) - CLOCK_SLACK_S
    for end in (row.ended, old_end):
        yield Window(row.cluster_user_id, first_s, int(end.timestamp()) + CLOCK_SLACK_S if end else None)


def windows_of(spans: Iterable[Span]) -> list[Window]:
    """Return the submit times whose attribution sessions may change that were joined or parted."""
    return [
        Window(
            each.cluster_user_id, int(each.started.timestamp()) - CLOCK_SLACK_S,
            int(each.ended.timestamp()) + CLOCK_SLACK_S if each.ended else None,
        )
        for each in spans
    ]  # fmt: skip


def _whole_seconds(session: DeclaredSession) -> DeclaredSession:
    """Drop fractions of seconds, which rows do not hold: the same session must compare equal."""
    ended, seen = (each.replace(microsecond=0) if each else None for each in (session.ended, session.last_seen))
    return replace(session, started=session.started.replace(microsecond=0), ended=ended, last_seen=seen)


def _record(actor: Actor, cluster: Cluster, source: str, results: list[SessionOutcome], jobs_changed: int) -> None:
    note_source(cluster=cluster, name=source, kind=IngestBatch.Kind.SESSIONS)
    counts = {name: sum(1 for each in results if each.outcome == name) for name in ("created", "changed")}
    if not any(counts.values()):
        return
    audit.record(
        actor=actor.ref, verb="ingest.sessions", object_kind="cluster", object_id=cluster.pk,
        object_label=cluster.name, after={**counts, "jobs_attributed": jobs_changed, "source": source},
    )  # fmt: skip


def _slices(numbers: list[int]) -> Iterator[list[int]]:
    iterator = iter(numbers)
    while part := list(islice(iterator, SLICE)):
        yield part

"""Sessions as collectors and harnesses declare them, and the jobs that they explain."""

import re
from collections.abc import Iterator, Sequence
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
from principals.services import DeclaredSession
from telemetry import permissions
from telemetry.engine.attribution import CLOCK_SLACK_S
from telemetry.engine.redaction import is_secretless
from telemetry.models import DataGeneration, IngestBatch
from telemetry.services.attribution import Window, attribute_pending, reattribute
from telemetry.services.sources import note_source

SLICE: Final = 200  # sessions of one transaction
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)  # Slurm is younger
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
            results, changed = _declare(cluster, [_whole_seconds(sessions[number]) for number in numbers])
            jobs_changed += changed
            _record(actor, cluster, source, results, changed)
            if any(each.outcome in ("created", "changed") for each in results):
                DataGeneration.objects.start(cluster)
        for number, result in zip(numbers, results, strict=True):
            outcomes[number] = result
    return Declared(outcomes, jobs_changed + attribute_pending(cluster=cluster))


def find_fault(session: DeclaredSession) -> str:
    """Say why a session cannot be taken; "" where it can."""
    if not _NAME.match(session.login):
        return "user_invalid"
    if not _HOST.match(session.host):
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


def _find_harness_fault(session: DeclaredSession) -> str:
    """Refuse a harness nobody knows: two slugs of one program would leave their jobs with none."""
    if session.kind != AgentSession.Kind.AGENT:
        return "harness_on_interactive" if session.harness else ""
    if not session.harness:
        return "harness_invalid"
    return "" if session.harness in known_harnesses() else "unknown_harness"


def _find_time_fault(session: DeclaredSession) -> str:
    latest = clock.now() + _CLOCKS_DIFFER
    if session.started < _EARLIEST:
        return "past_date"
    if session.started > latest or (session.ended is not None and session.ended > latest):
        return "future_date"
    if session.ended is not None and session.ended < session.started:
        return "end_before_start"
    return ""


def _declare(cluster: Cluster, sessions: list[DeclaredSession]) -> tuple[list[SessionOutcome], int]:
    recorded = principal_services.record_sessions(cluster=cluster, sessions=sessions)
    windows = [
        window for each in recorded if each.outcome != "unchanged" for window in _windows(each.row, each.old_end)
    ]
    names = dict(Agent.objects.filter(pk__in={each.row.agent_id for each in recorded}).values_list("pk", "name"))
    outcomes = [
        SessionOutcome(
            each.outcome,
            session_id=each.row.pk,
            agent=names.get(each.row.agent_id or 0),
            unregistered=each.unregistered,
        )
        for each in recorded
    ]
    return outcomes, reattribute(cluster=cluster, windows=windows)


def _windows(row: AgentSession, old_end: datetime | None) -> Iterator[Window]:
    """Yield the submit times whose attribution a new or changed session may change; an open one has no last."""
    first_s = int(row.started.timestamp()) - CLOCK_SLACK_S
    for end in (row.ended, old_end):
        yield Window(row.cluster_user_id, first_s, int(end.timestamp()) + CLOCK_SLACK_S if end else None)


def _whole_seconds(session: DeclaredSession) -> DeclaredSession:
    """Drop fractions of seconds, which rows do not hold: the same session must compare equal."""
    ended = session.ended.replace(microsecond=0) if session.ended else None
    return replace(session, started=session.started.replace(microsecond=0), ended=ended)


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

"""Findings arrive here, from whatever reported them, and join or open incidents."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from portal.core import audit, clock
from portal.core.errors import Invalid
from principals import permissions
from principals.actors import Actor
from principals.models import Cluster
from security.models import Finding
from security.models.incidents import incident_number
from security.services import filing
from security.services.reports import CleanFinding, ReportedFinding, clean_finding
from security.services.subjects import Subject, Subjects
from telemetry import services as telemetry_services
from telemetry.models import IngestBatch

MAX_FINDINGS = 500
# Rows in one transaction: SQLite's one writer is held for less than a quarter of a second.
CHUNK = 50


@dataclass(frozen=True, slots=True)
class FindingOutcome:
    """What became of one finding: opened, joined, reopened, duplicate, or rejected with a reason."""

    outcome: str
    incident_id: int | None = None
    incident: str = ""
    code: str = ""
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class _Ready:
    position: int
    finding: CleanFinding
    subject: Subject


def report_findings(
    *, actor: Actor, cluster: Cluster, findings: Sequence[ReportedFinding], at: datetime | None = None
) -> list[FindingOutcome]:
    """Store findings and return one outcome for each, in their order; sending them again changes nothing.

    A finding joins the current incident of its key, reopens it, or opens one (`security.engine.recurrence`). `at` is
    when they arrived, for history being loaded; now by default. Errors: `NotAllowed`; `Invalid` above 500 findings.
    """
    permissions.require(
        actor, "finding.report", cluster, remedy="Use a service token with ingest:findings for this cluster."
    )
    if len(findings) > MAX_FINDINGS:
        raise Invalid(
            f"More than {MAX_FINDINGS} findings at once.",
            code="too_many_findings",
            remedy="Send them in several calls.",
        )
    if at is None:  # history being loaded is no sign of life
        telemetry_services.note_source(cluster=cluster, name=actor.ref.label, kind=IngestBatch.Kind.FINDINGS)
    outcomes: dict[int, FindingOutcome] = {}
    ready = _prepare(cluster, findings, outcomes)
    for chunk in _chunks(ready):
        with transaction.atomic():
            _file(actor, cluster, chunk, outcomes, at or clock.now())
    _note_rejected(actor, cluster, outcomes)
    return [outcomes[position] for position in range(len(findings))]


def _prepare(
    cluster: Cluster, findings: Sequence[ReportedFinding], outcomes: dict[int, FindingOutcome]
) -> list[_Ready]:
    """Clean what can be cleaned and find whom it is about; the rest gets its refusal as outcome."""
    clean: dict[int, CleanFinding] = {}
    for position, said in enumerate(findings):
        try:
            clean[position] = clean_finding(said)
        except Invalid as error:
            outcomes[position] = _rejected(error)
    subjects, ready = Subjects(cluster, clean.values()), []
    for position, finding in clean.items():
        try:
            ready.append(_Ready(position, finding, subjects.of(finding)))
        except Invalid as error:
            outcomes[position] = _rejected(error)
    # One order for everybody: two batches with the same keys wait for each other instead of locking each other.
    return sorted(ready, key=lambda each: (each.finding.dedup_key(cluster.name), each.finding.said.occurred))


def _rejected(error: Invalid) -> FindingOutcome:
    return FindingOutcome("rejected", code=error.code, reason=error.detail, remedy=error.remedy)


def _chunks(ready: list[_Ready]) -> Iterator[list[_Ready]]:
    return (ready[start : start + CHUNK] for start in range(0, len(ready), CHUNK))


def _file(
    actor: Actor, cluster: Cluster, chunk: list[_Ready], outcomes: dict[int, FindingOutcome], at: datetime
) -> None:
    """File one chunk inside the caller's transaction."""
    keys = {each.position: each.finding.key(cluster.name) for each in chunk}
    known = dict(Finding.objects.filter(key__in=keys.values()).values_list("key", "incident_id"))
    file = filing.File(actor, cluster, at, (each.finding.dedup_key(cluster.name) for each in chunk))
    counts: Counter[str] = Counter()
    for each in chunk:
        key = keys[each.position]
        if key in known:
            outcomes[each.position] = FindingOutcome("duplicate", known[key], incident_number(known[key]))
        else:
            incident, how = file.add(each.finding, each.subject, key)
            known[key] = incident.pk
            outcomes[each.position] = FindingOutcome(how, incident.pk, incident.number)
        counts[outcomes[each.position].outcome] += 1
    file.close()
    if file.incidents:
        audit.record(
            actor=actor.ref, verb="finding.report", object_kind="cluster", object_id=cluster.pk,
            object_label=cluster.name, after={"outcomes": dict(counts), "incidents": sorted(file.incidents)},
        )  # fmt: skip


def _note_rejected(actor: Actor, cluster: Cluster, outcomes: dict[int, FindingOutcome]) -> None:
    """Leave an audit row of what was refused and why; the findings themselves may hold secrets and are not kept."""
    codes = Counter(outcome.code for outcome in outcomes.values() if outcome.outcome == "rejected")
    if codes:
        audit.record(
            actor=actor.ref, verb="finding.reject", object_kind="cluster", object_id=cluster.pk,
            object_label=cluster.name, after={"rejected": dict(codes)},
        )  # fmt: skip

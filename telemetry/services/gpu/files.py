"""Files of GPU use: read line by line, recorded in slices, and one batch that says what became of each line."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Final

from django.db import transaction
from django.db.models import F

from portal.core import clock
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.engine.gpu_exports import Outcome, Skipped, read_export
from telemetry.engine.gpu_use import GpuReading
from telemetry.engine.slurm.records import Rejected
from telemetry.models import IngestBatch
from telemetry.services.gpu.record import record_gpu_utilisation
from telemetry.services.ingest.quarantine import set_aside

SLICE: Final = 1000
_LEASE: Final = timedelta(minutes=10)
_COLUMN_OF: Final = {
    "created": "created_rows", "updated": "updated_rows", "unchanged": "duplicate_rows", "late": "late_rows",
}  # fmt: skip


@dataclass(slots=True)
class FileSummary:
    """What became of a file. `skipped` counts lines that speak of no GPU of a job, by reason."""

    batch: IngestBatch
    waiting: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


def import_gpu_file(
    *, actor: Actor, cluster: Cluster, lines: Iterable[str], format: str, name: str, source: str = "file"
) -> FileSummary:
    """Record a file of GPU use and return what became of it; a second time changes nothing.

    `format` is one of `telemetry.engine.gpu_exports.FORMATS`. What cannot be taken is set aside with its line and
    reason. Errors: `FormatError` where the file is of another form (nothing is taken then), `NotAllowed`.
    """
    permissions.require_feed(actor, "gpu", cluster.name)
    outcomes = read_export(lines, format=format)
    # Nobody goes on with what a killed process left: its lease runs out, and the same command again repeats nothing.
    batch = IngestBatch.objects.create(
        kind=IngestBatch.Kind.GPU, cluster=cluster, format=format, source=source[:64], name=name[:200],
        sender_kind=actor.ref.kind, sender_id=actor.ref.id, sent_by=actor.ref.label,
        state=IngestBatch.State.RUNNING, started=clock.now(), attempts=1, leased_until=clock.now() + _LEASE,
    )  # fmt: skip
    summary = FileSummary(batch)
    try:
        _work_through(actor, summary, outcomes)
    except BaseException as error:
        _finish(batch, IngestBatch.State.FAILED, f"{type(error).__name__}: run the same command again.")
        raise
    _finish(batch, IngestBatch.State.DONE, "")
    return summary


def _work_through(actor: Actor, summary: FileSummary, outcomes: Iterator[Outcome]) -> None:
    while found := list(islice(outcomes, SLICE)):
        summary.skipped.update(each.reason for each in found if isinstance(each, Skipped))
        readings = [each for each in found if isinstance(each, GpuReading)]
        rejected = [each for each in found if isinstance(each, Rejected)]
        results = record_gpu_utilisation(
            actor=actor, cluster=summary.batch.cluster, readings=readings, source=summary.batch.source
        )
        # Readings are sums over lines, so one that is refused has no line of its own.
        rejected += [
            Rejected(0, result.reason, f"Job {reading.raw_job_id}, GPU {reading.gpu[:100]}", str(tuple(reading)))
            for reading, result in zip(readings, results, strict=True)
            if result.outcome == "rejected"
        ]
        summary.waiting += sum(result.waits for result in results)
        _count(summary.batch, Counter(result.outcome for result in results), rejected)


def _count(batch: IngestBatch, outcomes: Counter[str], rejected: list[Rejected]) -> None:
    with transaction.atomic():
        secrets = set_aside(batch, rejected, before=batch.rejected_rows)
        added = {column: F(column) + outcomes[outcome] for outcome, column in _COLUMN_OF.items()}
        IngestBatch.objects.filter(pk=batch.pk).update(
            rejected_rows=F("rejected_rows") + len(rejected), redactions=F("redactions") + secrets,
            leased_until=clock.now() + _LEASE, **added,
        )  # fmt: skip
    batch.refresh_from_db()


def _finish(batch: IngestBatch, state: IngestBatch.State, error: str) -> None:
    IngestBatch.objects.filter(pk=batch.pk).update(
        state=state, error=error[:500], finished=clock.now(), leased_until=None
    )  # fmt: skip
    batch.refresh_from_db()

"""Files of GPU use: read line by line, recorded in slices, and one batch that says what became of each line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from django.db import transaction

from portal.core import clock
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.engine.gpu_exports import Outcome, Skipped, read_export
from telemetry.engine.gpu_use import GpuReading
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.records import Rejected
from telemetry.models import IngestBatch
from telemetry.services import gpu_rollups
from telemetry.services.gpu.record import SLICE, GpuOutcome, take_readings
from telemetry.services.ingest import batches
from telemetry.services.ingest.chunks import LEASE, LeaseLost, move_on
from telemetry.services.ingest.feed import Counts, Feed
from telemetry.services.ingest.quarantine import set_aside
from telemetry.services.ingest.running import place_of

_COUNTED_AS: Final = {"unchanged": "duplicate"}


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
    reason. Errors: `FormatError` where the file is of another form (nothing of it is taken then), `NotAllowed`.
    """
    permissions.require_feed(actor, "gpu", cluster.name)
    # Nobody goes on with what a killed process left: its lease runs out, and the same command again repeats nothing.
    batch = batches.start_batch(
        actor=actor, cluster=cluster, format=format, source=source, name=name, kind=IngestBatch.Kind.GPU
    )
    summary, feed = FileSummary(batch), Feed(batch, cluster, batches.lease_of(batch), group_is_lab=False)
    try:
        outcomes = read_export(_keep(feed, lines), format=format)
        while found := list(islice(outcomes, SLICE)):
            _take(summary, feed, found)
        batches.finish_batch(feed, actor.ref)
    except BaseException as error:
        why = str(error) if isinstance(error, FormatError) else f"{type(error).__name__}: run the same command again."
        batches.fail_batch(batch, feed.lease, actor.ref, why)
        raise
    gpu_rollups.refresh(cluster)
    return summary


def _keep(feed: Feed, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines and keep the batch ours meanwhile: samples are summed up to their end before anything is written."""
    for line in lines:
        if clock.now() > feed.lease - LEASE / 2 and not batches.keep_lease(feed):
            raise LeaseLost
        yield line


def _take(summary: FileSummary, feed: Feed, found: Sequence[Outcome]) -> None:
    """Store some outcomes with what is counted of them, in one transaction."""
    batch, counts = feed.batch, Counts()
    readings = [each for each in found if isinstance(each, GpuReading)]
    rejected = [each for each in found if isinstance(each, Rejected)]
    with transaction.atomic():
        results = take_readings(feed.cluster, readings, batch.source)
        for outcome, number in Counter(result.outcome for result in results).items():
            counts.add(_COUNTED_AS.get(outcome, outcome), number)
        counts.rejected_rows += len(rejected)
        rejected += _refused(readings, results)
        counts.redactions += set_aside(batch, rejected, before=batch.rejected_rows)
        lease = move_on(feed, place_of(batch), counts)
    feed.advance(place_of(batch), counts, lease)
    summary.waiting += sum(result.waits for result in results)
    summary.skipped.update(each.reason for each in found if isinstance(each, Skipped))


def _refused(readings: Sequence[GpuReading], results: Sequence[GpuOutcome]) -> Iterator[Rejected]:
    """Yield what is set aside of readings; they are sums over lines, so none has a line of its own."""
    for reading, result in zip(readings, results, strict=True):
        if result.outcome == "rejected":
            yield Rejected(0, result.reason, f"Job {reading.raw_job_id}, GPU {reading.gpu[:100]}", str(tuple(reading)))

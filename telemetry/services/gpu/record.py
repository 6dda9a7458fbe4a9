"""Taking readings of GPU use: a slice of them commits with what it changes of the jobs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.db import transaction
from django.db.models import Q

from portal.core import audit, clock
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.engine import gpu_use
from telemetry.engine.gpu_use import CLOCKS_DIFFER_S, GpuReading
from telemetry.engine.redaction import is_secretless
from telemetry.models import IngestBatch, JobGpu
from telemetry.services.gpu.jobs import JobFinder, reading_of, sum_up_jobs
from telemetry.services.sources import note_source

SLICE: Final = 500  # readings of one transaction
_WRITTEN: Final = (
    "compute_percent", "memory_percent", "memory_is_peak", "peak_memory_bytes", "total_memory_bytes", "model",
    "measured", "source", "received",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuOutcome:
    """What became of a reading: created, updated, unchanged, late (older than what is known), or rejected.

    `waits` where its job is not known yet: it is kept and matched later.
    """

    outcome: str
    reason: str = ""
    waits: bool = False


def record_gpu_utilisation(
    *, actor: Actor, cluster: Cluster, readings: Sequence[GpuReading], source: str = "api"
) -> list[GpuOutcome]:
    """Record what jobs used of their GPUs; return one outcome for each reading, in their order.

    A reading of the same job and GPU replaces an older one; sending the same again changes nothing. Errors:
    `NotAllowed`.
    """
    permissions.require_feed(actor, "gpu", cluster.name)
    outcomes: list[GpuOutcome] = []
    for first in range(0, len(readings), SLICE):
        with transaction.atomic():
            results = take_readings(cluster, readings[first : first + SLICE], source)
            _record(actor, cluster, source, results)
        outcomes += results
    return outcomes


def take_readings(cluster: Cluster, readings: Sequence[GpuReading], source: str) -> list[GpuOutcome]:
    """Store at most `SLICE` readings in the caller's transaction; return one outcome for each, in their order."""
    outcomes = [GpuOutcome("rejected", reason) for reason in map(find_fault, readings)]
    numbers = [number for number, outcome in enumerate(outcomes) if not outcome.reason]
    if not numbers:
        return outcomes
    good = [readings[number] for number in numbers]
    cluster.lock()
    for number, result in zip(numbers, _Slice(cluster, good, source[:64]).store(), strict=True):
        outcomes[number] = result
    newest = datetime.fromtimestamp(max(each.measured_s for each in good), UTC)
    note_source(cluster=cluster, name=source, kind=IngestBatch.Kind.GPU, newest=newest)
    return outcomes


def find_fault(reading: GpuReading) -> str:
    """Say why a reading cannot be taken; "" where it can."""
    if fault := gpu_use.find_fault(reading):
        return fault
    if not (is_secretless(reading.gpu) and is_secretless(reading.model)):
        return "secret_in_name"
    return "future_date" if reading.measured_s > clock.now_s() + CLOCKS_DIFFER_S else ""


class _Slice:
    """Some readings with the rows that are known of their jobs' GPUs."""

    def __init__(self, cluster: Cluster, readings: Sequence[GpuReading], source: str) -> None:
        self.cluster, self.readings, self.source = cluster, readings, source
        finder = JobFinder(cluster, {each.raw_job_id for each in readings})
        self.jobs = [finder.find(each.raw_job_id, each.measured_s) for each in readings]
        waiting = {each.raw_job_id for each, job in zip(readings, self.jobs, strict=True) if job is None}
        known = JobGpu.objects.filter(
            Q(job__in={job for job in self.jobs if job is not None})
            | Q(cluster=cluster, job__isnull=True, raw_id__in=waiting)
        )
        self.rows = {(row.job_id, row.raw_id, row.gpu): row for row in known}
        self.new: list[JobGpu] = []
        self.changed: dict[int, JobGpu] = {}

    def store(self) -> list[GpuOutcome]:
        """Judge the readings in their order, then write: at most eight queries, whatever their number."""
        results = [self._judge(reading, job) for reading, job in zip(self.readings, self.jobs, strict=True)]
        JobGpu.objects.bulk_create(self.new, batch_size=SLICE)
        JobGpu.objects.bulk_update(self.changed.values(), _WRITTEN)
        touched = {row.job_id for row in (*self.new, *self.changed.values())}
        sum_up_jobs(self.cluster, (row for row in self.rows.values() if row.job_id in touched))
        return results

    def _judge(self, reading: GpuReading, job: int | None) -> GpuOutcome:
        key = job, reading.raw_job_id, reading.gpu
        row = self.rows.get(key)
        if row is None:
            self.rows[key] = row = JobGpu(cluster=self.cluster, raw_id=reading.raw_job_id, job_id=job, gpu=reading.gpu)
            self.new.append(row)
            self._write(row, reading)
            return GpuOutcome("created", waits=job is None)
        old = reading_of(row)
        if old.measured_s > reading.measured_s:
            return GpuOutcome("late", waits=job is None)
        if old == reading:
            return GpuOutcome("unchanged", waits=job is None)
        self._write(row, reading)
        if row.pk is not None:
            self.changed[row.pk] = row
        return GpuOutcome("updated", waits=job is None)

    def _write(self, row: JobGpu, reading: GpuReading) -> None:
        row.compute_percent, row.memory_percent = float(reading.compute_percent), float(reading.memory_percent)
        row.memory_is_peak, row.model = reading.memory_is_peak, reading.model
        row.peak_memory_bytes, row.total_memory_bytes = reading.peak_memory_bytes, reading.total_memory_bytes
        row.measured, row.source, row.received = (
            datetime.fromtimestamp(reading.measured_s, UTC),
            self.source,
            clock.now(),
        )


def _record(actor: Actor, cluster: Cluster, source: str, results: Sequence[GpuOutcome]) -> None:
    counts = Counter(each.outcome for each in results)
    changed = {name: counts[name] for name in ("created", "updated")}
    if any(changed.values()):
        waiting = sum(each.waits for each in results)
        audit.record(
            actor=actor.ref, verb="ingest.gpu", object_kind="cluster", object_id=cluster.pk,
            object_label=cluster.name, after={**changed, "waiting": waiting, "source": source[:64]},
        )  # fmt: skip

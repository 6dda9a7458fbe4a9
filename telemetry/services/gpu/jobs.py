"""Jobs that readings speak of, and what those readings come to for each job."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, Final

from principals.models import Cluster
from telemetry.engine.accelerators import ACCELERATORS, Accelerator, identify, smallest_of
from telemetry.engine.gpu_use import CLOCKS_DIFFER_S, GpuReading, find_fit, sum_up
from telemetry.models import DataGeneration, Job, JobGpu, JobGpuUse, Node
from telemetry.services.gpu_rollups import mark_days

_MADE: Final = [each.name for each in JobGpuUse._meta.fields if each.name != "job"]


class JobFinder:
    """Jobs by raw id and instant: ids recycle, and a requeue makes another record under the same one. One query."""

    def __init__(self, cluster: Cluster, raw_ids: Collection[int]) -> None:
        jobs = Job.objects.filter(cluster=cluster, raw_id__in=raw_ids)
        self._ran: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        found = jobs.order_by("submit").values_list("raw_id", "start", "usage_end", "pk")
        for raw_id, start, until, pk in found:
            if start is None:
                continue
            self._ran[raw_id].append((int(start.timestamp()), int((until or start).timestamp()), pk))

    def find(self, raw_id: int, measured_s: int) -> int | None:
        """Return the record that ran when it was measured; None where none is known (yet).

        What was measured after the newest record's last second may be of a run that nobody has told of yet.
        """
        known = self._ran.get(raw_id, ())
        # A job that is requeued at once starts again before clocks could be told apart: by our own first.
        begun = [ran for ran in known if ran[0] <= measured_s] or [
            ran for ran in known if ran[0] <= measured_s + CLOCKS_DIFFER_S
        ]
        if not begun or measured_s > begun[-1][1] + CLOCKS_DIFFER_S:
            return None
        return begun[-1][2]


def sum_up_jobs(cluster: Cluster, rows: Iterable[JobGpu]) -> None:
    """Make the rows of jobs anew from all their readings, in the caller's transaction: five queries.

    Marks the days of their ends for recomputation.
    """
    gpus: dict[int, list[JobGpu]] = defaultdict(list)
    for row in rows:
        if row.job_id is not None:
            gpus[row.job_id].append(row)
    if not gpus:
        return
    jobs = Job.objects.filter(pk__in=gpus).only("extra", "usage_end").in_bulk()
    among = accelerators_of(cluster)
    JobGpuUse.objects.bulk_create(
        [_use_of(job_id, own, jobs[job_id].extra, among) for job_id, own in gpus.items()],
        update_conflicts=True, unique_fields=["job"], update_fields=_MADE,
    )  # fmt: skip
    mark_days(cluster, (job.usage_end.date() for job in jobs.values() if job.usage_end))
    DataGeneration.objects.start(cluster)


def accelerators_of(cluster: Cluster) -> list[Accelerator]:
    """Return the models that a cluster's nodes have; the whole table where its inventory names none."""
    nodes = Node.objects.filter(cluster=cluster, gpus__gt=0)
    names = {name for types in nodes.values_list("gpu_types", flat=True) for name in types}
    found = {one.slug: one for one in map(smallest_of, sorted(names)) if one is not None}
    return list(found.values()) or list(ACCELERATORS)


def _use_of(job_id: int, gpus: list[JobGpu], extra: dict[str, Any], among: Collection[Accelerator]) -> JobGpuUse:
    use = sum_up([reading_of(each) for each in gpus])
    accelerator = _accelerator_of(gpus, extra)
    fit, name = find_fit(use, accelerator, among)
    return JobGpuUse(
        job_id=job_id, accelerator=accelerator.slug if accelerator else "", fit=fit.value, fit_name=name,
        gpus=use.gpus, unused_gpus=use.unused_gpus, compute_percent=use.compute_percent,
        memory_percent=use.memory_percent, used_percent=use.used_percent, memory_is_peak=use.memory_is_peak,
        peak_memory_bytes=use.peak_memory_bytes, quadrant=use.quadrant.value,
    )  # fmt: skip


def reading_of(row: JobGpu) -> GpuReading:
    """Return a stored reading in the normal form."""
    return GpuReading(
        row.raw_id, row.gpu, row.compute_percent, row.memory_percent, int(row.measured.timestamp()),
        row.peak_memory_bytes, row.total_memory_bytes, row.model, row.memory_is_peak,
    )  # fmt: skip


def _accelerator_of(gpus: list[JobGpu], extra: dict[str, Any]) -> Accelerator | None:
    """Return the model of a job's GPUs, by what was measured or by what Slurm allocated; None where it had several."""
    types = extra.get("gpu_types") or []
    allocated = str(types[0]) if len(types) == 1 else ""
    found = {identify(each.model or allocated, each.total_memory_bytes) for each in gpus}
    return found.pop() if len(found) == 1 else None

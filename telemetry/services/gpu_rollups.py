"""Rollups of GPU use by day: recomputed, never incremented.

Readings mark the days of the jobs that they change, in their own transaction. What changes a job marks its days for the
other rollups; who recomputes those marks the same days here, in the transaction that takes their marks away. So at any
moment a day that is out of date has one mark or the other. It is a module of its own beside `gpu`, which needs the
ingest, which needs `rollups`, which needs this.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Coalesce

from portal.core import clock
from principals.models import Cluster
from telemetry.models import DataGeneration, Job, RollupGpu, RollupGpuDirty
from telemetry.selectors.gpu_jobs import SUMS, on_gpus, renamed
from telemetry.services.marks import Marks

_MARKS: Final = Marks(RollupGpuDirty, lease="gpu-rollups", columns={"day": "date"})
_KEY: Final = ("lab_id", "partition", "actor", "harness")
_COLUMNS: Final = (*_KEY, "quadrant", *SUMS)


def mark_days(cluster: Cluster, days: Iterable[date]) -> None:
    """Mark UTC days for recomputation, in the caller's transaction."""
    _MARKS.put(cluster, ((day,) for day in days))


def is_behind(cluster: Cluster) -> bool:
    """Say whether a day of a cluster is marked."""
    return _MARKS.of(cluster).exists()


def refresh(cluster: Cluster | None = None) -> int:
    """Recompute the days that are marked, newest first; return how many were done (see `Marks.work_off`)."""
    return _MARKS.work_off(cluster, _refresh_cluster)


def _refresh_cluster(cluster: Cluster, holder: str) -> int:
    """Look once at each day that is marked now: what changes meanwhile stays marked and is for the next time."""
    done = 0
    marks = _MARKS.of(cluster).order_by("-day")
    for day in list(marks.values_list("day", flat=True)):
        if not _MARKS.goes_on(cluster, holder):
            break
        if mark := marks.filter(day=day).first():
            done += _replace(cluster, holder, mark, _compute(cluster, day))
    return done


def _compute(cluster: Cluster, day: date) -> list[RollupGpu]:
    """Compute a day, without a lock: one query, by the index of jobs with GPUs."""
    midnight = clock.midnight(day)
    jobs = on_gpus(Job.objects.filter(cluster=cluster), midnight, midnight + timedelta(days=1))
    groups = jobs.values_list(*_KEY, Coalesce("gpu_use__quadrant", Value(""))).annotate(**renamed(SUMS)).order_by()
    return [RollupGpu(cluster=cluster, day=day, **dict(zip(_COLUMNS, row, strict=True))) for row in groups]


@transaction.atomic
def _replace(cluster: Cluster, holder: str, mark: RollupGpuDirty, rows: list[RollupGpu]) -> int:
    """Write what was computed of a day, unless its mark was touched since; return how many days were."""
    if not _MARKS.take(cluster, holder, [mark]):
        return 0
    RollupGpu.objects.filter(cluster=cluster, day=mark.day).delete()
    RollupGpu.objects.bulk_create(rows)
    DataGeneration.objects.start(cluster)
    return 1

"""Rollups of GPU use: which days are out of date, and recomputing them. Never incremented.

Readings mark the days of the jobs that they change, in their own transaction. What changes a job marks its days for the
other rollups; who recomputes those marks the same days here, in the transaction that takes their marks away. So at any
moment a day that is out of date has one mark or the other. It is a module of its own beside `gpu`, which needs the
ingest, which needs `rollups`, which needs this.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import BigIntegerField, Count, F, FloatField, Q, QuerySet, Sum, Value
from django.db.models.functions import Cast, Coalesce, Floor

from portal.core import leases, stopping
from principals.models import Cluster
from telemetry.models import Job, RollupGpu, RollupGpuDirty
from telemetry.services.generations import start_generation

LEASE_S: Final = 30
_MARK: Final = (
    "INSERT INTO telemetry_rollupgpudirty (cluster_id, day, stamp) VALUES (%s, %s, 0) "
    "ON CONFLICT (cluster_id, day) DO UPDATE SET stamp = telemetry_rollupgpudirty.stamp + 1"
)
_KEY: Final = ("cluster_user_id", "lab_id", "partition", "actor", "harness")
_MEASURED_S: Final = F("gpu_use__gpus") * F("elapsed_s")
_STRANDED_S: Final = Cast(_MEASURED_S, FloatField()) * (Value(100.0) - F("gpu_use__used_percent")) / Value(100.0)
_SUMS: Final[dict[str, Any]] = {
    "jobs": Count("pk"),
    "held_s": Sum(F("gpus") * F("elapsed_s")),
    "measured_s": Sum(_MEASURED_S, default=0),
    "stranded_s": Sum(Cast(Floor(_STRANDED_S + Value(0.5)), BigIntegerField()), default=0),
    "peaks": Count("pk", filter=Q(gpu_use__memory_is_peak=True)),
}
_COLUMNS: Final = (*_KEY, "quadrant", "fit", *_SUMS)


def mark_days(cluster: Cluster, days: Iterable[date]) -> None:
    """Mark UTC days for recomputation, in the caller's transaction; sorted, against deadlocks."""
    marks = [(cluster.pk, day) for day in sorted(set(days))]
    if marks:
        with connection.cursor() as cursor:
            cursor.executemany(_MARK, marks)


def is_behind(cluster: Cluster) -> bool:
    """Say whether a day of a cluster is marked."""
    return RollupGpuDirty.objects.filter(cluster=cluster).exists()


def refresh(cluster: Cluster | None = None) -> int:
    """Recompute the days that are marked, newest first; return how many were done.

    A cluster whose lease `gpu-rollups:<name>` somebody else holds is left to them.
    """
    waiting = Cluster.objects.filter(pk__in=RollupGpuDirty.objects.values("cluster_id")).order_by("pk")
    done = 0
    for each in waiting.filter(pk=cluster.pk) if cluster else waiting:
        with leases.held(f"gpu-rollups:{each.name}", seconds=LEASE_S) as holder:
            done += _refresh_cluster(each, holder) if holder else 0
    return done


def _refresh_cluster(cluster: Cluster, holder: str) -> int:
    """Look once at each day that is marked now: what changes meanwhile stays marked and is for the next time."""
    done = 0
    marks = RollupGpuDirty.objects.filter(cluster=cluster).order_by("-day")
    for day in list(marks.values_list("day", flat=True)):
        if stopping.asked() or not leases.take(f"gpu-rollups:{cluster.name}", holder, seconds=LEASE_S):
            break
        if mark := marks.filter(day=day).first():
            done += _replace(cluster, holder, mark, _compute(cluster, day))
    return done


def _compute(cluster: Cluster, day: date) -> list[RollupGpu]:
    """Compute a day, without a lock: one query, by the index of jobs with GPUs."""
    groups = jobs_of_day(cluster, day).values_list(
        *_KEY, Coalesce("gpu_use__quadrant", Value("")), Coalesce("gpu_use__fit", Value(""))
    )
    sums = {f"{name}_": expression for name, expression in _SUMS.items()}  # no sum is named like a column
    rows = groups.annotate(**sums).order_by()
    return [RollupGpu(cluster=cluster, day=day, **dict(zip(_COLUMNS, row, strict=True))) for row in rows]


def jobs_of_day(cluster: Cluster, day: date) -> QuerySet[Job]:
    """Return the jobs with GPUs that ended on a UTC day after having started."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Job.objects.filter(
        cluster=cluster, gpus__gt=0, start__isnull=False, end__isnull=False,
        usage_end__gte=midnight, usage_end__lt=midnight + timedelta(days=1),
    )  # fmt: skip


@transaction.atomic
def _replace(cluster: Cluster, holder: str, mark: RollupGpuDirty, rows: list[RollupGpu]) -> int:
    """Write what was computed of a day, unless its mark was touched since; return how many days were.

    That the lease is still ours, to the end of this transaction, keeps out who read earlier and comes to write later.
    """
    if not leases.take(f"gpu-rollups:{cluster.name}", holder, seconds=LEASE_S):
        return 0
    standing = RollupGpuDirty.objects.filter(pk=mark.pk, stamp=mark.stamp)
    if not standing.select_for_update(skip_locked=True).first():
        return 0
    standing.delete()
    RollupGpu.objects.filter(cluster=cluster, day=mark.day).delete()
    RollupGpu.objects.bulk_create(rows)
    start_generation(cluster)
    return 1

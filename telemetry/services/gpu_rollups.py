"""Rollups of GPU use: which days are out of date, and recomputing them. Never incremented.

Readings mark the days of the jobs that they change, in their own transaction. What changes a job marks its days for the
other rollups; who recomputes those marks the same days here, in the transaction that takes their marks away. So at any
moment a day that is out of date has one mark or the other. It is a module of its own beside `gpu`, which needs the
ingest, which needs `rollups`, which needs this.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Coalesce

from portal.core import leases, stopping
from principals.models import Cluster
from telemetry.models import Job, RollupGpu, RollupGpuDirty
from telemetry.selectors.gpu_jobs import SUMS, on_gpus, renamed
from telemetry.services.generations import start_generation

LEASE_S: Final = 30
_MARK: Final = (
    "INSERT INTO telemetry_rollupgpudirty (cluster_id, day, stamp) VALUES (%s, %s, 0) "
    "ON CONFLICT (cluster_id, day) DO UPDATE SET stamp = telemetry_rollupgpudirty.stamp + 1"
)
_KEY: Final = ("lab_id", "partition", "actor", "harness")
_COLUMNS: Final = (*_KEY, "quadrant", *SUMS)


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
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    jobs = on_gpus(Job.objects.filter(cluster=cluster), midnight, midnight + timedelta(days=1))
    groups = jobs.values_list(*_KEY, Coalesce("gpu_use__quadrant", Value(""))).annotate(**renamed(SUMS)).order_by()
    return [RollupGpu(cluster=cluster, day=day, **dict(zip(_COLUMNS, row, strict=True))) for row in groups]


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

"""Readings that came before their job was known: matched once it is."""

from collections.abc import Sequence
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from portal.core import audit, leases, stopping
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry.models import JobGpu
from telemetry.services.gpu.jobs import JobFinder, sum_up_jobs

CHUNK: Final = 500
LEASE: Final = "gpu-readings"
LEASE_S: Final = 60


def match_gpu_utilisation() -> int:
    """Give readings that wait to their jobs, those that are known by now; return how many found theirs.

    They are looked up without any lock; only those that found their job are looked at again under it. Whoever comes
    while another matches leaves it to them: many that wait take longer than the minute until the next time.
    """
    waiting = list(Cluster.objects.filter(pk__in=JobGpu.objects.filter(job__isnull=True).values("cluster_id")))
    if not waiting:
        return 0
    with leases.held(LEASE, seconds=LEASE_S) as holder:
        return sum(_match_cluster(cluster, holder) for cluster in waiting) if holder else 0


def _match_cluster(cluster: Cluster, holder: str) -> int:
    after, matched = 0, 0
    waits = JobGpu.objects.filter(cluster=cluster, job__isnull=True).order_by("pk")
    while _goes_on(holder) and (rows := list(waits.filter(pk__gt=after)[:CHUNK])):
        after = rows[-1].pk
        if found := [row.pk for row, job in _find_jobs(cluster, rows) if job is not None]:
            matched += _match(cluster, waits.filter(pk__in=found))
    return matched


def _goes_on(holder: str) -> bool:
    return not stopping.asked() and leases.take(LEASE, holder, seconds=LEASE_S)


def _match(cluster: Cluster, waits: QuerySet[JobGpu]) -> int:
    with transaction.atomic():
        cluster.lock()
        matched = _adopt(cluster, list(waits))
        if matched:
            audit.record(
                actor=SYSTEM_ACTOR.ref, verb="ingest.gpu_matched", object_kind="cluster", object_id=cluster.pk,
                object_label=cluster.name, after={"matched": matched},
            )  # fmt: skip
    return matched


def _find_jobs(cluster: Cluster, rows: Sequence[JobGpu]) -> list[tuple[JobGpu, int | None]]:
    finder = JobFinder(cluster, {row.raw_id for row in rows})
    return [(row, finder.find(row.raw_id, int(row.measured.timestamp()))) for row in rows]


def _adopt(cluster: Cluster, rows: list[JobGpu]) -> int:
    """Give rows to their jobs; where the job has a newer reading of that GPU already, the older goes."""
    found = _find_jobs(cluster, rows)
    known = {(row.job_id, row.gpu): row for row in JobGpu.objects.filter(job__in={job for _, job in found if job})}
    adopted, gone = [], []
    for row, job in found:
        if job is None:
            continue
        other = known.get((job, row.gpu))
        if other is not None and other.measured >= row.measured:
            gone.append(row.pk)
            continue
        if other is not None:
            gone.append(other.pk)
        row.job_id = job
        adopted.append(row)
    JobGpu.objects.filter(pk__in=gone).delete()
    JobGpu.objects.bulk_update(adopted, ["job"])
    sum_up_jobs(cluster, JobGpu.objects.filter(job__in={row.job_id for row in adopted}))
    return sum(job is not None for _, job in found)

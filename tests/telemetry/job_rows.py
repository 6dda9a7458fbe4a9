"""Jobs as rows for tests of rollups and figures, and the rollups of them in plain Python."""

from collections import Counter, defaultdict
from itertools import count
from typing import Any

from principals.models import ClusterUser, Lab
from telemetry.engine import touched
from telemetry.models import Job
from telemetry.services import mark_dirty
from telemetry.services.attribution import footprint_of
from tests.telemetry import usage_by_hand

_numbers = count(1)

DAY_0 = 1_782_864_000  # 2026-07-01 00:00 UTC, a Wednesday
FAILED = {"FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE"}


def make_job(user: ClusterUser, lab: Lab, *, submit: int, start: int | None = None, end: int | None = None,
             **fields: Any) -> Job:  # fmt: skip
    """A job of one core on one node, marked for the rollups; ended where `end` is given."""
    span = end - start if start is not None and end is not None else 0
    defaults: dict[str, Any] = {
        "raw_id": next(_numbers), "job_id": "1", "state": "COMPLETED" if end is not None else "PENDING",
        "elapsed_s": span, "usage_end": end, "cpus": 1, "nodes": 1, "digest": 0, "changed": submit,
        "partition": "shared",
    }  # fmt: skip
    job = Job(cluster=user.cluster, cluster_user=user, lab=lab, submit=submit, start=start, end=end)
    for name, value in (defaults | fields).items():
        setattr(job, name, value)
    job.save()
    mark(job)
    return job


def mark(job: Job) -> None:
    """Mark what a job touches, as an ingest does."""
    job.refresh_from_db()
    days = touched.days_of(footprint_of(job, job.cluster_user_id))
    mark_dirty(job.cluster, {(touched.as_date(day), job.cluster_user_id) for day in days})


def _s(value: Any) -> int | None:
    return None if value is None else int(value.timestamp())


def expected_days(jobs: list[Job]) -> dict[tuple[Any, ...], Counter[str]]:
    """Add up, job by job and piece by piece, what every daily rollup should hold."""
    rollups: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)

    def at(job: Job, second: int) -> Counter[str]:
        return rollups[
            second // 86_400, job.cluster_user_id, job.lab_id, job.partition, job.qos, job.actor, job.harness
        ]

    for job in jobs:
        submit, start, until, end = (_s(value) for value in (job.submit, job.start, job.usage_end, job.end))
        at(job, submit)["submissions"] += job.array_tasks  # type: ignore[arg-type]
        if start is not None and until is not None:
            for second, seconds in usage_by_hand.prorate(job.elapsed_s, list(usage_by_hand.split_by_day(start, until))):
                sums = {"wall_s": 1, "core_s": job.cpus, "node_s": job.nodes, "gpu_s": job.gpus}
                at(job, second).update({name: seconds * held for name, held in sums.items()})
        if end is not None:
            at(job, end).update(_ended(job, submit, start))  # type: ignore[arg-type]
    return {key: +sums for key, sums in rollups.items() if +sums}


def _ended(job: Job, submit: int, start: int | None) -> dict[str, int]:
    tasks = job.array_tasks
    sums = {
        "ended_cancelled": tasks * (job.state == "CANCELLED"),
        "ended_failed": tasks * (job.state in FAILED),
        "ended_timeout": tasks * (job.state == "TIMEOUT"),
    }
    if start is None:
        return sums | {"ended_never_started": tasks}
    wait = max(0, start - submit)
    core_s = job.elapsed_s * job.cpus
    lost = job.state in FAILED | {"TIMEOUT", "CANCELLED"}
    return sums | {
        "ended": tasks, "ended_wall_s": job.elapsed_s, "ended_node_s": job.elapsed_s * job.nodes,
        "ended_wait_node_s": wait * job.nodes * (job.elapsed_s > 0), "ended_core_s": core_s,
        "ended_lost_core_s": core_s * lost, "wait_s": wait * tasks, "waits": tasks,
    }  # fmt: skip


def expected_runtimes(jobs: list[Job]) -> Counter[tuple[Any, ...]]:
    """Count the ended jobs by the day of their end, user, lab, actor, harness and bucket of their run time."""
    found: Counter[tuple[Any, ...]] = Counter()
    for job in jobs:
        if job.end is not None and job.start is not None:
            key = (_s(job.end) // 86_400, job.cluster_user_id, job.lab_id, job.actor, job.harness)  # type: ignore[operator]
            found[*key, usage_by_hand.histogram_bucket(job.elapsed_s)] += job.array_tasks
    return found


def expected_hours(jobs: list[Job]) -> dict[tuple[Any, ...], Counter[str]]:
    """Add up what every hourly rollup should hold."""
    rollups: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for job in jobs:
        submit, start, until = (_s(value) for value in (job.submit, job.start, job.usage_end))
        key = (job.partition, job.actor, job.harness)
        rollups[submit // 3600 * 3600, *key]["submissions"] += job.array_tasks  # type: ignore[operator]
        if start is not None and until is not None:
            for second, seconds in usage_by_hand.prorate(
                job.elapsed_s, list(usage_by_hand.split_by_hour(start, until))
            ):
                held = {"core_s": job.cpus, "node_s": job.nodes, "gpu_s": job.gpus}
                rollups[second, *key].update({name: seconds * n for name, n in held.items()})
    return {key: +sums for key, sums in rollups.items() if +sums}

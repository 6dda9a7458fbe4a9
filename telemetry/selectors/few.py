"""Whose jobs are behind the cells of a table: what a report asks before it shows one."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Sum

from telemetry.models import Job
from telemetry.selectors.gpu_jobs import gpu_jobs
from telemetry.selectors.scope import Scope


def by_partition(scope: Scope, names: Sequence[str]) -> Iterator[tuple[str, str, int, Mapping[str, int]]]:
    """Yield partition, actor, login name and some sums of its days: one query."""
    rows: Any = scope.rollups().order_by().values_list("partition", "actor", "cluster_user")
    for partition, actor, user, *sums in rows.annotate(**{f"{name}_": Sum(name) for name in names}):
        yield partition, actor, user, dict(zip(names, sums, strict=True))


def by_method(scope: Scope) -> dict[str, set[int]]:
    """Return whose submissions of the period each method attributed: one query over all jobs."""
    jobs = Job.objects.visible_to(scope.actor).filter(
        cluster=scope.cluster, submit__gte=scope.period.starts, submit__lt=scope.period.ends
    )
    found: dict[str, set[int]] = defaultdict(set)
    for method, user in jobs.order_by().values_list("actor_method", "cluster_user").distinct():
        found[method].add(user)
    return found


def gpu_people(scope: Scope) -> list[tuple[str, str, str, int]]:
    """Return actor, use, what would have done ("" of both where nobody measured) and login name: one query."""
    rows = gpu_jobs(scope).order_by().values_list("actor", "gpu_use__quadrant", "gpu_use__fit", "cluster_user")
    return [(actor, quadrant or "", fit or "", user) for actor, quadrant, fit, user in rows.distinct()]

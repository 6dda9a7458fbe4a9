"""Lists of jobs: what is live, how many in each state, and totals that never count more than they may."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db.models import Count, F, Q, QuerySet, Sum

from portal.core import clock
from principals.actors import Actor as Principal
from principals.models import Cluster
from telemetry.models import Actor, Job, RollupDay, RollupUser
from telemetry.selectors.held import held_now
from telemetry.selectors.job_filters import OTHERS, JobFilter

RECENT: Final = timedelta(hours=1)
MOST_COUNTED: Final = 100_000
# What a filter may ask that daily rollups can answer too.
_IN_ROLLUPS: Final = {
    "cluster": "cluster__name", "actor": "actor", "harness": "harness", "lab": "lab__name", "partition": "partition",
    "qos": "qos", "user": "cluster_user__login",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many jobs are in a state, and how many of them are agents'."""

    jobs: int = 0
    agents: int = 0

    @property
    def share(self) -> float | None:
        """Agents' share."""
        return self.agents / self.jobs if self.jobs else None

    def __add__(self, other: "StateCount") -> "StateCount":
        return StateCount(self.jobs + other.jobs, self.agents + other.agents)


@dataclass(frozen=True, slots=True)
class JobTotals:
    """What a list adds up to. `exact` is False where there are more than `MOST_COUNTED`: `records` is that then.

    Hours are of whole jobs; where `within_days`, they are what the days themselves hold, from the daily rollups.
    `tasks` counts a record that stands for several array tasks as that many, None where nothing measured it.
    """

    records: int
    exact: bool
    tasks: int | None = None
    core_hours: float | None = None
    gpu_hours: float | None = None
    within_days: bool = False


def clusters() -> list[Cluster]:
    """Return every cluster by name."""
    return list(Cluster.objects.order_by("name"))


def live_jobs(actor: Principal, asked: JobFilter) -> QuerySet[Job]:
    """Return what Slurm can hold now (`held_now`) and what ended in the last hour, narrowed, as `actor` may see it."""
    since = clock.now() - RECENT
    ids = [one.pk for one in clusters() if asked.cluster in ("", one.name)]
    # Each half has an index that leads with the cluster. Joined by OR, SQLite would walk all of a cluster's jobs.
    of_these = Job.objects.filter(cluster_id__in=ids)
    fresh = held_now(of_these.active()).values("pk").union(of_these.filter(usage_end__gte=since).values("pk"))
    return asked.apply(Job.objects.visible_to(actor).filter(pk__in=fresh), actor)


def count_states(jobs: QuerySet[Job]) -> dict[str, StateCount]:
    """Count jobs by Slurm's state: one query."""
    sums = {"number": Count("pk"), "of_agents": Count("pk", filter=Q(actor=Actor.AGENT))}
    rows = jobs.order_by().values_list("state").annotate(**sums)
    return {state: StateCount(number, of_agents) for state, number, of_agents in rows}


def choices_in(jobs: QuerySet[Job], *columns: str, limit: int = 300) -> list[tuple[Any, ...]]:
    """Return the distinct values of some columns, in order, the empty ones left out."""
    rows = jobs.order_by(*columns).values_list(*columns).distinct()[:limit]
    return [row for row in rows if row[0]]


def total(actor: Principal, asked: JobFilter, jobs: QuerySet[Job]) -> JobTotals:
    """Add a list up, looking at `MOST_COUNTED` records at most; beyond, the daily rollups answer where they can.

    They are asked first: where they know of many more, none is counted.
    """
    summed = _rollups(actor, asked) if asked.without("first", "last", *_IN_ROLLUPS).is_empty else None
    sums: Any = None
    if summed is not None:
        sums = summed.aggregate(
            tasks=Sum("submissions", default=0), core_s=Sum("core_s", default=0), gpu_s=Sum("gpu_s", default=0)
        )
    # A record may stand for several tasks still, so that there are fewer of those than of these.
    is_many = sums is not None and sums["tasks"] > 2 * MOST_COUNTED
    records = MOST_COUNTED + 1 if is_many else jobs.order_by()[: MOST_COUNTED + 1].count()
    if records <= MOST_COUNTED:
        return _exact(records, jobs)
    if sums is None:
        return JobTotals(MOST_COUNTED, False)
    return JobTotals(MOST_COUNTED, False, sums["tasks"], sums["core_s"] / 3600, sums["gpu_s"] / 3600, within_days=True)


def _exact(records: int, jobs: QuerySet[Job]) -> JobTotals:
    sums = jobs.order_by().aggregate(
        tasks=Sum("array_tasks", default=0),
        core_s=Sum(F("cpus") * F("elapsed_s"), default=0), gpu_s=Sum(F("gpus") * F("elapsed_s"), default=0),
    )  # fmt: skip
    return JobTotals(records, True, sums["tasks"], sums["core_s"] / 3600, sums["gpu_s"] / 3600)


def _rollups(actor: Principal, asked: JobFilter) -> QuerySet[Any]:
    wanted = {column: getattr(asked, name) for name, column in _IN_ROLLUPS.items() if getattr(asked, name)}
    if asked.actor == OTHERS:
        del wanted["actor"]
    model = RollupDay if asked.partition or asked.qos else RollupUser
    rows = model.objects.visible_to(actor).filter(**wanted)
    if asked.actor == OTHERS:
        rows = rows.exclude(actor=Actor.AGENT)
    if asked.first:
        rows = rows.filter(day__gte=asked.first)
    return rows.filter(day__lte=asked.last) if asked.last else rows


def find_by_id(actor: Principal, text: str, *, limit: int = 10) -> list[Job]:
    """Return visible jobs by exact id, newest first: a raw id, or an array task (`123_4`) of a known array.

    Ids recycle, so there may be several. Every look-up leads with the cluster, as the key does.
    """
    head, _, task = text.strip().partition("_")
    if not (head.isascii() and head.isdigit()) or len(head) > 18:
        return []
    visible = Job.objects.visible_to(actor).select_related("cluster", "cluster_user", "lab")
    ids = [one.pk for one in clusters()]
    found = list(visible.filter(cluster_id__in=ids, raw_id=int(head)).order_by("-submit")[:limit])
    if not task:
        return found
    # The tasks of an array have its submit time and user; that is where the index leads.
    tasks = Q(pk=None)
    for job in found:
        tasks |= Q(cluster_user_id=job.cluster_user_id, submit=job.submit, job_id=text.strip())
    return list(visible.filter(tasks).order_by("-submit")[:limit])


def newest_by_raw_id(actor: Principal, cluster: str, raw_id: int) -> Job | None:
    """Return the newest visible record of a raw job id; ids recycle, and a requeue makes another record."""
    visible = Job.objects.visible_to(actor).select_related("cluster", "cluster_user", "account", "lab")
    found = visible.filter(cluster__in=Cluster.objects.named(cluster), raw_id=raw_id)
    return found.order_by("-submit").first() if 0 <= raw_id < 2**63 else None

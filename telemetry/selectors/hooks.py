"""How soon changes of jobs are told, by who told first, and how many ends Slurm's hooks missed."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Exists, Max, Min, OuterRef, Q, Sum

from portal.core import clock
from portal.core.models import LiveEvent
from principals.models import Cluster
from telemetry.engine.slurm.values import ENDED_STATES
from telemetry.engine.transitions import ENDED, REQUEUED, RESUMED, STARTED, SUBMITTED, SUSPENDED
from telemetry.models import HookReport, Job, SlurmReader

RECENT: Final = timedelta(days=1)
NEWEST: Final = 2000  # events of which lags are taken
SETTLED: Final = timedelta(minutes=2)  # by then the hook of an end has come, or never will
NAMES: Final = (SUBMITTED, STARTED, ENDED, REQUEUED, SUSPENDED, RESUMED)
_HAPPENED: Final = (HookReport.Happened.ENDED, HookReport.Happened.REQUEUED)


@dataclass(frozen=True, slots=True)
class Teller:
    """A source of a cluster's job events in the last day: what it told first of the newest `NEWEST` events, how soon.

    Of a hook also what it sent: reports, such as came again, and such as wait for accounting.
    """

    cluster: str
    name: str
    told: int = 0
    lag_median_s: float | None = None
    lag_p99_s: float | None = None
    received: int | None = None
    repeats: int = 0
    waiting: int = 0
    unanswered: int = 0


@dataclass(frozen=True, slots=True)
class Missed:
    """Ends of jobs that ran, in the last day, since hooks were first heard in it: all, and those no hook told of."""

    cluster: str
    ended: int
    missed: int

    @property
    def share(self) -> float | None:
        """Which share of the ends the hooks missed; None where nothing ended."""
        return self.missed / self.ended if self.ended else None


@dataclass(frozen=True, slots=True)
class ClusterSources:
    """When the queue of a cluster was looked at, its accounting swept, a hook of it fired, and a job of it ended."""

    looked: datetime | None
    swept: datetime | None
    hook_heard: datetime | None
    job_ended: datetime | None


def cluster_sources(cluster: Cluster) -> ClusterSources:
    """Return when the sources of a cluster last told something: three queries."""
    reader = SlurmReader.objects.filter(cluster=cluster).first()
    heard = HookReport.objects.filter(cluster=cluster).aggregate(Max("fired"))["fired__max"]
    ended = Job.objects.filter(cluster=cluster, end__isnull=False).order_by("-usage_end").values_list("end", flat=True)
    return ClusterSources(
        looked=reader.looked if reader else None, swept=reader.swept_until if reader else None, hook_heard=heard,
        job_ended=ended.first(),
    )  # fmt: skip


def tellers() -> list[Teller]:
    """Return who told of changes of jobs in the last day, by cluster: two queries."""
    since = clock.now() - RECENT
    lags: dict[tuple[str, str], list[float]] = defaultdict(list)
    newest = LiveEvent.objects.filter(at__gte=since, name__in=NAMES).order_by("-id")
    for cluster, source, lag_s in newest.values_list("payload__cluster", "payload__source", "payload__lag_s")[:NEWEST]:
        if source is not None and lag_s is not None:
            lags[cluster, source].append(lag_s)
    reports = HookReport.objects.filter(received__gte=since).order_by().values("cluster__name", "kind")
    sent = {
        (row["cluster__name"], row["kind"]): row
        for row in reports.annotate(
            received=Count("pk"), repeated=Sum("repeats"),
            waiting=Count("pk", filter=Q(outcome=HookReport.Outcome.WAITING)),
            unanswered=Count("pk", filter=Q(outcome=HookReport.Outcome.UNANSWERED)),
        )
    }  # fmt: skip
    return [_teller(*key, sorted(lags.get(key, ())), sent.get(key)) for key in sorted(lags.keys() | sent.keys())]


def missed_ends() -> list[Missed]:
    """Return how many ends the hooks of each cluster missed: one query, and one for each cluster that has hooks."""
    now = clock.now()
    heard = HookReport.objects.filter(received__gte=now - RECENT, happened__in=_HAPPENED).order_by()
    found = []
    for row in heard.values("cluster", "cluster__name").annotate(since=Min("received")):
        told = HookReport.objects.filter(cluster=row["cluster"], raw_id=OuterRef("raw_id"), happened__in=_HAPPENED)
        ends = Job.objects.filter(
            cluster=row["cluster"], usage_end__gte=row["since"], end__gte=row["since"], end__lt=now - SETTLED,
            state__in=sorted(ENDED_STATES),
        )  # fmt: skip
        sums = ends.aggregate(ended=Count("pk"), missed=Count("pk", filter=~Exists(told)))
        found.append(Missed(row["cluster__name"], sums["ended"], sums["missed"]))
    return sorted(found, key=lambda each: each.cluster)


def _teller(cluster: str, name: str, lags: list[float], sent: Mapping[str, Any] | None) -> Teller:
    told = Teller(
        cluster, name, len(lags), lags[(len(lags) - 1) // 2] if lags else None,
        lags[-(-99 * len(lags) // 100) - 1] if lags else None,
    )  # fmt: skip
    if sent is None:
        return told
    return Teller(
        cluster, name, told.told, told.lag_median_s, told.lag_p99_s, sent["received"], sent["repeated"],
        sent["waiting"], sent["unanswered"],
    )  # fmt: skip

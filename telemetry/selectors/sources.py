"""How each source of telemetry does: its state, its lag, and what came of what it sent."""

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from django.db.models import Count, Q, QuerySet, Sum

from portal.core import clock
from principals.actors import Actor
from principals.models import Cluster
from telemetry.models import (
    IngestBatch,
    IngestGap,
    IngestSource,
    InventoryReading,
    QuarantinedRow,
    RollupDirty,
    SlurmReader,
)

# A source is late after this many of the intervals it is expected at, and down after that many.
LATE_AFTER: Final = 2
DOWN_AFTER: Final = 10
RECENT: Final = timedelta(days=1)
GAPS_SHOWN: Final = timedelta(days=7)


class SourceState(StrEnum):
    """As the chips of a source say it."""

    CURRENT = "current"
    LATE = "late"
    DOWN = "down"
    NOT_CONFIGURED = "not_configured"


@dataclass(frozen=True, slots=True)
class Source:
    """A source, or a kind that a cluster has none for (`row` is None then). Ages in seconds, at one instant."""

    cluster: str
    kind: str
    name: str
    state: SourceState
    age_s: int | None = None
    lag_s: int | None = None
    expected_every_s: int | None = None
    last_received: datetime | None = None
    records_an_hour: float | None = None  # of job records: taken from batches that began in the last day
    gaps: int = 0  # silences that ended in the last week, and how long they were together
    silent_s: int = 0


def state_of(age_s: int | None, expected_every_s: int | None) -> SourceState:
    """Judge a source by the age of what it sent last; one that comes when it comes is never late."""
    if age_s is None:
        return SourceState.NOT_CONFIGURED
    if not expected_every_s or age_s <= expected_every_s * LATE_AFTER:
        return SourceState.CURRENT
    return SourceState.LATE if age_s <= expected_every_s * DOWN_AFTER else SourceState.DOWN


def sources(*, with_past: bool = False) -> list[Source]:
    """Return every source by cluster and kind, and the kinds a cluster has no source for: two queries.

    `with_past`: with what they brought in the last day and their gaps, two more; each page asks for their state alone.
    """
    now = clock.now()
    rates, gaps = (_rates(now), _gaps(now)) if with_past else ({}, {})
    known = []
    for row in IngestSource.objects.select_related("cluster").order_by("name"):
        silences = gaps.get(row.pk, [])
        rate = rates.get((row.cluster_id, row.name), 0.0) if row.kind == IngestBatch.Kind.JOBS else None
        known.append(
            replace(_source(row, now), records_an_hour=rate, gaps=len(silences), silent_s=sum(silences))
        )  # fmt: skip
    heard = {(source.cluster, source.kind) for source in known}
    missing = [
        Source(cluster.name, kind, "", SourceState.NOT_CONFIGURED)
        for cluster in Cluster.objects.order_by("name")
        for kind in IngestBatch.Kind.values
        if (cluster.name, kind) not in heard
    ]
    return sorted(known + missing, key=lambda one: (one.cluster, IngestBatch.Kind.values.index(one.kind), one.name))


def _rates(now: datetime) -> dict[tuple[int, str], float]:
    """Return how many job records an hour were taken from each cluster and source in the last day."""
    batches = IngestBatch.objects.filter(kind=IngestBatch.Kind.JOBS, created__gte=now - RECENT).order_by()
    taken = batches.values_list("cluster_id", "source").annotate(taken=Sum("created_rows") + Sum("updated_rows"))
    return {(cluster, source): number / (RECENT / timedelta(hours=1)) for cluster, source, number in taken}


def _gaps(now: datetime) -> dict[int, list[int]]:
    """Return the seconds of each source's silences that ended in the last week."""
    found: dict[int, list[int]] = defaultdict(list)
    for gap in IngestGap.objects.filter(until__gte=now - GAPS_SHOWN):
        found[gap.source_id].append(int((gap.until - gap.since).total_seconds()))
    return found


def readers() -> QuerySet[SlurmReader]:
    """Return how far the readers of the clusters are."""
    return SlurmReader.objects.select_related("cluster").order_by("cluster__name")


def inventory() -> QuerySet[InventoryReading]:
    """Return what is known of each cluster besides jobs: at most four kinds a cluster."""
    return InventoryReading.objects.select_related("cluster").order_by("cluster__name", "kind")


def _source(row: IngestSource, now: datetime) -> Source:
    age_s = _seconds(now, row.last_received)
    lag = _seconds(row.last_received, row.last_record_at) if row.last_received else None
    return Source(
        row.cluster.name, row.kind, row.name, state_of(age_s, row.expected_every_s), age_s, lag,
        row.expected_every_s, row.last_received,
    )  # fmt: skip


def _seconds(later: datetime, earlier: datetime | None) -> int | None:
    return None if earlier is None else max(0, int((later - earlier).total_seconds()))


@dataclass(frozen=True, slots=True)
class Intake:
    """What became of the records of some batches."""

    accepted: int
    duplicate: int
    late: int
    rejected: int
    redactions: int
    running: int


def intake(actor: Actor, since: datetime) -> Intake:
    """Add up what batches brought since an instant: one query."""
    working = Q(state__in=(IngestBatch.State.QUEUED, IngestBatch.State.RUNNING))
    names = ("created_rows", "updated_rows", "duplicate_rows", "late_rows", "rejected_rows", "redactions")
    sums = IngestBatch.objects.visible_to(actor).aggregate(
        working=Count("pk", filter=working),
        **{name: Sum(name, filter=Q(created__gte=since), default=0) for name in names},
    )
    return Intake(
        sums["created_rows"] + sums["updated_rows"], sums["duplicate_rows"], sums["late_rows"], sums["rejected_rows"],
        sums["redactions"], sums["working"],
    )  # fmt: skip


def quarantined(actor: Actor) -> QuerySet[QuarantinedRow]:
    """Return the rows that were set aside, of batches that `actor` may see."""
    rows = QuarantinedRow.objects.select_related("batch__cluster")
    return rows if actor.sees_facility else rows.filter(batch__in=IngestBatch.objects.visible_to(actor))


def reasons_of(rows: QuerySet[QuarantinedRow]) -> list[tuple[str, int]]:
    """Count rows by reason, most frequent first."""
    counted = rows.order_by().values_list("reason").annotate(number=Count("pk"))
    return sorted(((str(reason), number) for reason, number in counted), key=lambda each: (-each[1], each[0]))


def rollup_backlog() -> int:
    """Return how many (day, user) pairs wait for recomputation."""
    return RollupDirty.objects.count()

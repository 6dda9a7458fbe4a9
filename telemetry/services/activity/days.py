"""Adding minutes up by UTC days: which days are out of date, and recomputing them. Never incremented.

As the rollups of jobs: who stores minutes marks their (day, login name) in the same transaction; the refresher reads
marks, then minutes, and in one transaction replaces the days and deletes the marks that still are as it read them.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q

from portal.core import clock, leases, stopping
from principals.models import Cluster
from telemetry.models import ActivityDay, ActivityDirty, ActivityMinute, DataGeneration

LEASE_S: Final = 30
MINUTES_KEPT: Final = timedelta(days=30)
_READ: Final = (
    "session_id", "host", "driver", "study_id", "minute", "counts", "session__harness", "session__cluster_user_id",
)  # fmt: skip


def oldest_day_kept() -> date:
    """Return the first day whose minutes are all there still."""
    return (clock.now() - MINUTES_KEPT).date() + timedelta(days=1)


def mark_days(cluster: Cluster, pairs: Iterable[tuple[date, int | None]]) -> None:
    """Mark (UTC day, login name's id, or None for the nodes' totals) in the caller's transaction, cluster locked."""
    wanted = set(pairs)
    if not wanted:
        return
    days = {day for day, _ in wanted}
    # Those of one cluster are marked one after the other; the refresher may take one away while we wait for its row.
    standing = ActivityDirty.objects.select_for_update().filter(cluster=cluster, day__in=days).order_by("pk")
    known = {(row.day, row.cluster_user_id): row.pk for row in standing}
    ActivityDirty.objects.filter(pk__in=[known[pair] for pair in wanted if pair in known]).update(stamp=F("stamp") + 1)
    ActivityDirty.objects.bulk_create(
        ActivityDirty(cluster=cluster, day=day, cluster_user_id=user) for day, user in wanted - known.keys()
    )


def refresh_activity(cluster: Cluster | None = None) -> int:
    """Add up anew what is marked, newest day first; return how many marks were worked off.

    A cluster whose lease `activity:<name>` somebody else holds is left to them.
    """
    waiting = Cluster.objects.filter(pk__in=ActivityDirty.objects.values("cluster_id")).order_by("pk")
    done = 0
    for each in waiting.filter(pk=cluster.pk) if cluster else waiting:
        with leases.held(f"activity:{each.name}", seconds=LEASE_S) as holder:
            done += _refresh_cluster(each, holder) if holder else 0
    return done


def _refresh_cluster(cluster: Cluster, holder: str) -> int:
    """Look once at each mark that stands now: what changes meanwhile stays marked and is for the next time."""
    done = 0
    for mark in list(ActivityDirty.objects.filter(cluster=cluster).order_by("-day", "pk")):
        if stopping.asked() or not leases.take(f"activity:{cluster.name}", holder, seconds=LEASE_S):
            break
        done += _replace(cluster, holder, mark, _add_up(mark))
    return done


@dataclass(slots=True)
class _Sum:
    """One row to be, as its minutes come."""

    of: dict[str, Any]
    minutes: set[datetime] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)


def _add_up(mark: ActivityDirty) -> list[ActivityDay]:
    """Add up the minutes of a day, of one login name's sessions or of what belongs to none; without a lock."""
    midnight = datetime(mark.day.year, mark.day.month, mark.day.day, tzinfo=UTC)
    minutes = ActivityMinute.objects.filter(
        _whose(mark), cluster=mark.cluster_id, minute__gte=midnight, minute__lt=midnight + timedelta(days=1)
    )
    sums: dict[tuple[Any, ...], _Sum] = {}
    for session, host, driver, study, minute, counts, harness, user in minutes.values_list(*_READ).iterator():
        key = (session,) if session else (host, driver)
        found = sums.get(key)
        if found is None:
            of = {"session_id": session, "host": host, "driver": driver, "study_id": study, "harness": harness or ""}
            found = sums[key] = _Sum(of | {"cluster_user_id": user})
        found.minutes.add(minute)
        found.counts.update(counts)
    return [
        ActivityDay(
            cluster_id=mark.cluster_id, day=mark.day, minutes=len(each.minutes), counts=dict(each.counts), **each.of
        )
        for each in sums.values()
    ]


def _whose(mark: ActivityDirty) -> Q:
    return Q(session__cluster_user=mark.cluster_user_id) if mark.cluster_user_id else Q(session=None)


@transaction.atomic
def _replace(cluster: Cluster, holder: str, mark: ActivityDirty, rows: list[ActivityDay]) -> int:
    """Write what was added up, unless the mark was touched since; return how many marks were taken.

    That the lease is still ours, to the end of this transaction, keeps out who read earlier and comes to write later.
    A day some of whose minutes are gone keeps what it has.
    """
    if not leases.take(f"activity:{cluster.name}", holder, seconds=LEASE_S):
        return 0
    standing = ActivityDirty.objects.filter(pk=mark.pk, stamp=mark.stamp)
    if not standing.select_for_update(skip_locked=True).first():
        return 0
    standing.delete()
    if mark.day < oldest_day_kept():
        return 1
    known = ActivityDay.objects.filter(cluster=cluster, day=mark.day, cluster_user=mark.cluster_user_id)
    known.filter(session__isnull=mark.cluster_user_id is None).delete()
    ActivityDay.objects.bulk_create(rows)
    DataGeneration.objects.start(cluster)
    return 1

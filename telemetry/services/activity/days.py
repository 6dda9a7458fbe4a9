"""Adding minutes up by UTC days: which days are out of date, and recomputing them. Never incremented.

Who stores minutes marks their (day, login name) in the same transaction (`telemetry.services.marks`).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from portal.core import clock
from principals.models import Cluster
from telemetry.models import ActivityDay, ActivityDirty, ActivityMinute, DataGeneration
from telemetry.services.marks import Marks

_MARKS: Final = Marks(ActivityDirty, lease="activity", columns={"day": "date", "user_key": "bigint"})
MINUTES_KEPT: Final = timedelta(days=30)
_READ: Final = (
    "session_id", "host", "driver", "study_id", "minute", "counts", "session__harness", "session__cluster_user_id",
    "session__place", "place",
)  # fmt: skip


def oldest_day_kept() -> date:
    """Return the first day whose minutes are all there still."""
    return (clock.now() - MINUTES_KEPT).date() + timedelta(days=1)


def mark_days(cluster: Cluster, pairs: Iterable[tuple[date, int | None]]) -> None:
    """Mark (UTC day, login name's id, or None for the nodes' totals) in the caller's transaction."""
    _MARKS.put(cluster, ((day, user or ActivityDirty.NODES) for day, user in pairs))


def refresh_activity(cluster: Cluster | None = None) -> int:
    """Add up anew what is marked, newest day first; return how many marks were worked off (see `Marks.work_off`)."""
    return _MARKS.work_off(cluster, _refresh_cluster)


def _refresh_cluster(cluster: Cluster, holder: str) -> int:
    """Look once at each mark that stands now: what changes meanwhile stays marked and is for the next time."""
    done = 0
    for mark in list(_MARKS.of(cluster).order_by("-day", "pk")):
        if not _MARKS.goes_on(cluster, holder):
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
    read = minutes.values_list(*_READ).iterator()
    for session, host, driver, study, minute, counts, harness, user, session_place, node_place in read:
        place = session_place or node_place
        key = (session,) if session else (host, driver, place)
        found = sums.get(key)
        if found is None:
            of = {"session_id": session, "host": host, "driver": driver, "study_id": study, "harness": harness or ""}
            found = sums[key] = _Sum(of | {"cluster_user_id": user, "place": place})
        found.minutes.add(minute)
        found.counts.update(counts)
    return [
        ActivityDay(
            cluster_id=mark.cluster_id, day=mark.day, minutes=len(each.minutes), counts=dict(each.counts), **each.of
        )
        for each in sums.values()
    ]


def _whose(mark: ActivityDirty) -> Q:
    return Q(session=None) if mark.user_key == ActivityDirty.NODES else Q(session__cluster_user=mark.user_key)


@transaction.atomic
def _replace(cluster: Cluster, holder: str, mark: ActivityDirty, rows: list[ActivityDay]) -> int:
    """Write what was added up, unless the mark was touched since; return how many marks were taken.

    A day some of whose minutes are gone keeps what it has.
    """
    if not _MARKS.take(cluster, holder, [mark]):
        return 0
    if mark.day < oldest_day_kept():
        return 1
    of_nodes = mark.user_key == ActivityDirty.NODES
    known = ActivityDay.objects.filter(
        cluster=cluster, day=mark.day, cluster_user=None if of_nodes else mark.user_key, session__isnull=of_nodes
    )
    known.delete()
    ActivityDay.objects.bulk_create(rows)
    DataGeneration.objects.start(cluster)
    return 1

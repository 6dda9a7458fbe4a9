"""Adding minutes up by UTC days: which days are out of date, and recomputing them. Never incremented.

Who stores minutes marks their (day, login name) in the same transaction (`telemetry.services.marks`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from portal.core import clock
from principals.models import Cluster
from telemetry.models import ActivityDay, ActivityDirty, ActivityMinute, DataGeneration
from telemetry.services.marks import Marks

_MARKS: Final = Marks(ActivityDirty, lease="activity", columns={"day": "date", "user_key": "bigint"})
MARKS_A_PART: Final = 100  # so many login names are added up at once: more would hold SQLite's write lock for long
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
    for day, marks in groupby(list(_MARKS.of(cluster).order_by("-day", "pk")), key=attrgetter("day")):
        waiting = iter(marks)
        while part := list(islice(waiting, MARKS_A_PART)):
            if not _MARKS.goes_on(cluster, holder):
                return done
            done += _replace(cluster, holder, day, part, _add_up(cluster, day, part))
    return done


@dataclass(slots=True)
class _Sum:
    """One row to be, as its minutes come."""

    of: dict[str, Any]
    minutes: set[datetime] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)


def _add_up(cluster: Cluster, day: date, marks: Sequence[ActivityDirty]) -> list[ActivityDay]:
    """Add up the minutes of a day, of the marked login names' sessions and of what belongs to none; without a lock."""
    midnight = clock.midnight(day)
    minutes = ActivityMinute.objects.filter(
        _whose(marks, "session__cluster_user"),
        cluster=cluster, minute__gte=midnight, minute__lt=midnight + timedelta(days=1),
    )  # fmt: skip
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
        ActivityDay(cluster=cluster, day=day, minutes=len(each.minutes), counts=dict(each.counts), **each.of)
        for each in sums.values()
    ]


def _whose(marks: Sequence[ActivityDirty], user: str) -> Q:
    """Return what the rows of some marks have in common: the login names, and what belongs to no session."""
    users = {mark.user_key for mark in marks}
    of_nodes = Q(session=None, **{user: None}) if ActivityDirty.NODES in users else Q()
    return of_nodes | Q(session__isnull=False, **{f"{user}__in": users - {ActivityDirty.NODES}})


@transaction.atomic
def _replace(
    cluster: Cluster, holder: str, day: date, marks: Sequence[ActivityDirty], rows: Sequence[ActivityDay]
) -> int:
    """Write what was added up for those marks that nobody touched since; return how many were taken.

    A day some of whose minutes are gone keeps what it has.
    """
    taken = _MARKS.take(cluster, holder, marks)
    if not taken or day < oldest_day_kept():
        return len(taken)
    users = {mark.user_key for mark in taken}
    ActivityDay.objects.filter(_whose(taken, "cluster_user"), cluster=cluster, day=day).delete()
    ActivityDay.objects.bulk_create(row for row in rows if (row.cluster_user_id or ActivityDirty.NODES) in users)
    DataGeneration.objects.start(cluster)
    return len(taken)

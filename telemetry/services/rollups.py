"""Rollups: which are out of date, and recomputing them. Never incremented.

Whoever changes a job marks the (UTC day, login name) pairs it touches, under its old and its new values, in the same
transaction. The refresher deletes a mark, reads the jobs and writes the rollups in one transaction, so that a change
it could not see leaves a mark that outlives it.
"""

import time
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from django.db import connection, transaction
from django.db.models import Model

from portal.core import leases, stopping
from principals.models import Cluster
from telemetry.models import RollupDay, RollupDirty, RollupHour, RollupRuntime
from telemetry.selectors import recomputation

LEASE_S = 30  # taken anew for each part; short, so that a refresher that was killed holds nobody up for long
# So many users of one day at a time, to keep SQLite's write lock within 250 ms (`make bench` measures it). PostgreSQL
# makes only the writers of one cluster wait, and each part looks at the day's jobs anew.
USERS_A_PART = {"sqlite": 30, "postgresql": 400}
REFRESH_LIMIT = 20_000
# A chunk of an ingest marks some thousand pairs: `bulk_create` would cost more than the jobs themselves.
_MARK = (
    "INSERT INTO telemetry_rollupdirty (cluster_id, day, cluster_user_id) VALUES (%s, %s, %s) "
    "ON CONFLICT (cluster_id, day, cluster_user_id) DO UPDATE SET day = excluded.day"
)


def mark_dirty(cluster: Cluster, pairs: Iterable[tuple[date, int]]) -> int:
    """Mark (UTC day, ClusterUser id) pairs for recomputation, in the caller's transaction; return how many.

    A mark that stands already is updated, not skipped: the update locks its row until the caller commits, so that a
    refresher that runs meanwhile cannot take the mark away without seeing the change. Sorted, against deadlocks.
    """
    marks = [(cluster.pk, day, user_id) for day, user_id in sorted(set(pairs))]
    if marks:
        with connection.cursor() as cursor:
            cursor.executemany(_MARK, marks)
    return len(marks)


def refresh(*, cluster: Cluster | None = None, limit: int = REFRESH_LIMIT) -> int:
    """Recompute what is marked, newest day first, about `limit` pairs at most; return how many pairs were done.

    A cluster whose lease `rollups:<name>` somebody else holds is left to them.
    """
    waiting = Cluster.objects.filter(pk__in=RollupDirty.objects.values("cluster_id")).order_by("pk")
    done = 0
    for each in waiting.filter(pk=cluster.pk) if cluster else waiting:
        if done >= limit:
            break
        with leases.held(f"rollups:{each.name}", seconds=LEASE_S) as holder:
            done += _refresh_cluster(each, holder, limit - done) if holder else 0
    return done


def catch_up(*, cluster: Cluster, patience_s: float = 60) -> bool:
    """Refresh until nothing of a cluster is marked; say whether that was reached within `patience_s`.

    Waits where another process holds the lease: it does the same work. Errors: `Stopping`.
    """
    deadline = time.monotonic() + patience_s
    while RollupDirty.objects.filter(cluster=cluster).exists():
        stopping.check()
        if not refresh(cluster=cluster):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
    return True


def _refresh_cluster(cluster: Cluster, holder: str, limit: int) -> int:
    marked = RollupDirty.objects.filter(cluster=cluster)
    done = 0
    for day in list(marked.order_by("-day").values_list("day", flat=True).distinct()):
        users = sorted(marked.filter(day=day).values_list("cluster_user_id", flat=True))
        parts = _cut(users)
        for part in parts:
            if stopping.asked() or not leases.take(f"rollups:{cluster.name}", holder, seconds=LEASE_S):
                return done
            # The hours come last: should this process die before, the marks that are left bring somebody back.
            done += _recompute(cluster, day, part, with_hours=part is parts[-1])
        if done >= limit:
            break
    return done


def _cut(users: list[int]) -> list[list[int]]:
    """Cut the users of a day into parts, the last of a single one where there are several: the hours come with it."""
    size = USERS_A_PART[connection.vendor]
    if len(users) <= size:
        return [users]
    most = users[:-1]
    return [*(most[i : i + size] for i in range(0, len(most), size)), users[-1:]]


@transaction.atomic
def _recompute(cluster: Cluster, day: date, user_ids: Sequence[int], *, with_hours: bool) -> int:
    """Recompute some users of one day, and the day's hours; return how many marks were taken.

    The cluster's row keeps two refreshers apart, whatever became of the lease. Marks that an ingest holds are left.
    """
    Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    marks = dict(
        RollupDirty.objects.filter(cluster=cluster, day=day, cluster_user_id__in=user_ids)
        .select_for_update(skip_locked=True)
        .values_list("pk", "cluster_user_id")
    )
    RollupDirty.objects.filter(pk__in=marks).delete()
    _replace_days(cluster, day, list(marks.values()))
    if with_hours:
        start = recomputation.epoch_of(day)
        RollupHour.objects.filter(cluster=cluster, hour__gte=start, hour__lt=start + 86_400).delete()
        _insert(RollupHour, recomputation.HOUR_COLUMNS, recomputation.hour_rows(cluster.pk, day))
    return len(marks)


def _replace_days(cluster: Cluster, day: date, user_ids: list[int]) -> None:
    old = RollupDay.objects.filter(cluster=cluster, day=day, cluster_user_id__in=user_ids)
    RollupRuntime.objects.filter(rollup__in=old).delete()
    old.delete()
    lines, histograms = recomputation.day_rows(cluster.pk, day, user_ids)
    _insert(RollupDay, recomputation.DAY_COLUMNS, lines)
    made = old.values_list("pk", *recomputation.DAY_KEY)
    runtimes = [(pk, bucket, jobs) for pk, *key in made for bucket, jobs in histograms.get(tuple(key), ())]
    _insert(RollupRuntime, ("rollup", "bucket", "jobs"), runtimes)


def _insert(model: type[Model], names: Sequence[str], lines: Sequence[tuple[Any, ...]]) -> None:
    """Insert plain tuples: a model instance a row costs several times as much, under SQLite's write lock."""
    if not lines:
        return
    fields = [model._meta.get_field(name.removesuffix("_id")) for name in names]
    quoted = ", ".join(connection.ops.quote_name(str(getattr(field, "column", ""))) for field in fields)
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({quoted}) FROM STDIN") as copy:
                for line in lines:
                    copy.write_row(line)
            return
        marks = ", ".join(["%s"] * len(names))
        cursor.executemany(f"INSERT INTO {table} ({quoted}) VALUES ({marks})", lines)  # noqa: S608 - names of our own

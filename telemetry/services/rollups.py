"""Rollups by user and day, by hour, of run times: recomputed, never incremented.

Whoever changes a job marks the (UTC day, login name) pairs it touches, under its old and its new values, in the same
transaction.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction
from django.db.models import Model, QuerySet

from portal.core import stopping
from principals.models import Cluster
from telemetry.engine.usage import DAY_S
from telemetry.models import DataGeneration, RollupDay, RollupDirty, RollupHistogram, RollupHour, RollupUser
from telemetry.services import gpu_rollups, job_indexes
from telemetry.services.marks import Marks

if TYPE_CHECKING:
    import polars as pl

# So many users and days are written at once, to keep SQLite's write lock within 250 ms (`make bench` measures it);
# for each part the jobs of its days are read anew.
MARKS_A_PART = {"sqlite": 600, "postgresql": 20_000}
JOBS_A_PART = 20_000  # so many jobs are read at once, where a single day has not more
DAYS_A_PART = 64
REFRESH_LIMIT = 20_000
_MARKS = Marks(RollupDirty, lease="rollups", columns={"day": "date", "cluster_user_id": "bigint"})


def mark_dirty(cluster: Cluster, pairs: Iterable[tuple[date, int]]) -> int:
    """Mark (UTC day, ClusterUser id) pairs for recomputation, in the caller's transaction; return how many."""
    return _MARKS.put(cluster, pairs)


def refresh(*, cluster: Cluster | None = None, limit: int = REFRESH_LIMIT) -> int:
    """Recompute what is marked, newest day first, about `limit` pairs of each cluster at most; return how many were.

    See `Marks.work_off` for what is left to others.
    """
    return _MARKS.work_off(cluster, lambda each, holder: _refresh_cluster(each, holder, limit))


def catch_up(*, cluster: Cluster, patience_s: float = 60, gpus: bool = True) -> bool:
    """Refresh until nothing of a cluster is marked; say whether that was reached within `patience_s`.

    `gpus`: the rollups of GPU use too. They are computed by whole days, too much for every few jobs that come.

    Waits where another process holds the lease: it does the same work. Indexes of jobs that a killed load left out are
    built first, for there may be no worker that does. Errors: `Stopping`.
    """
    deadline = time.monotonic() + patience_s
    while (marked := _MARKS.of(cluster).exists()) or (gpus and gpu_rollups.is_behind(cluster)):
        stopping.check()
        job_indexes.build_missing()
        if not (refresh(cluster=cluster) if marked else gpu_rollups.refresh(cluster)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
    return True


def write_computed(cluster: Cluster, marks: Sequence[RollupDirty], days: "pl.DataFrame", users: "pl.DataFrame") -> int:
    """Write what a load computed of its own jobs, for those marks that nobody touched since they were read.

    Returns how many generations of the cluster's data that made; 0 too where somebody else recomputes rollups.
    """
    made, size = 0, MARKS_A_PART[connection.vendor]
    with _MARKS.held(cluster) as holder:
        for first in range(0, len(marks) if holder else 0, size):
            made += bool(_replace(cluster, holder, marks[first : first + size], _Part(0, days, users)))
    return made


def _refresh_cluster(cluster: Cluster, holder: str, limit: int) -> int:
    """Recompute what is marked in a cluster, some days at a time: as many as make a part of some size."""
    done, days = 0, 1
    while done < limit and _MARKS.goes_on(cluster, holder):
        marks = _next_marks(cluster, days)
        if not marks:
            break
        part = _compute(cluster, marks)
        taken = _replace(cluster, holder, marks, part)
        if not taken:
            break  # all of it changed meanwhile, or somebody else has the lease: later
        done += taken
        # More days at once where they are small; at most twice as many, for the next ones may not be.
        days = max(1, min(days * 2, DAYS_A_PART, days * JOBS_A_PART // max(part.jobs, 1)))
    return done


def _next_marks(cluster: Cluster, days: int) -> list[RollupDirty]:
    """Return the marks of the newest marked day and of some days before it, of that day alone where all are too many.

    Memory grows with the rollups of a part: a quiet day may be followed by a whole facility's.
    """
    from telemetry.selectors.recomputation import count_submitted, epoch_of

    marked = _MARKS.of(cluster).order_by("-day", "pk")
    newest = marked.values_list("day", flat=True).first()
    if newest is None:
        return []
    first, behind = newest - timedelta(days=days - 1), epoch_of(newest) + DAY_S
    if days > 1 and count_submitted(cluster.pk, epoch_of(first), behind, most=JOBS_A_PART) >= JOBS_A_PART:
        first = newest
    return list(marked.filter(day__gte=first)[: MARKS_A_PART[connection.vendor]])


@dataclass(frozen=True, slots=True)
class _Part:
    """What the rollups of some users and whole days should say: a row a `DAY_KEY`, and a row a `USER_KEY`."""

    jobs: int
    days: "pl.DataFrame"
    users: "pl.DataFrame"


def _compute(cluster: Cluster, marks: Sequence[RollupDirty]) -> _Part:
    """Compute the days and users of some marks; without a lock, for that is most of the time."""
    from telemetry.engine.rollup_columns import DayRollups
    from telemetry.selectors.recomputation import epoch_of, read_jobs

    lo, hi = epoch_of(marks[-1].day), epoch_of(marks[0].day) + DAY_S
    found = DayRollups(lo, hi)
    for jobs in read_jobs(cluster.pk, {mark.cluster_user_id for mark in marks}, lo, hi):
        found.add(jobs)
    return _Part(found.jobs, *found.tables())


@transaction.atomic
def _replace(cluster: Cluster, holder: str, marks: Sequence[RollupDirty], part: _Part) -> int:
    """Write what was computed for those marks that nobody touched since; return how many were taken."""
    taken = _MARKS.take(cluster, holder, marks)
    if not taken:
        return 0
    users: dict[date, list[int]] = defaultdict(list)
    for mark in taken:
        users[mark.day].append(mark.cluster_user_id)
    gpu_rollups.mark_days(cluster, users)
    for model, rows in ((RollupDay, part.days), (RollupUser, part.users)):
        _replace_rows(model, cluster, users, rows)
    _replace_hours(cluster, users, part.days)
    _replace_histograms(cluster, users, part.users)
    DataGeneration.objects.start(cluster)
    return len(taken)


def _replace_rows(
    model: type[RollupDay] | type[RollupUser],
    cluster: Cluster,
    users: Mapping[date, Sequence[int]],
    rows: "pl.DataFrame",
) -> None:
    """Write the rollups of some users' days; `rows` may have others, too, which are left."""

    for day, ids in users.items():
        model.objects.filter(cluster=cluster, day=day, cluster_user_id__in=ids).delete()
    ours = _of_users(rows, users)
    _insert(model, ours.insert_column(0, _same(cluster.pk, ours)))


def _of_users(rows: "pl.DataFrame", users: Mapping[date, Sequence[int]]) -> "pl.DataFrame":
    import polars as pl

    pairs = [(day, user) for day, ids in users.items() for user in ids]
    taken = pl.DataFrame(pairs, schema={"day": pl.Date, "cluster_user_id": pl.Int64}, orient="row")
    return rows.join(taken, on=taken.columns, how="semi")


def _with_others(
    model: type[RollupDay] | type[RollupUser],
    cluster: Cluster,
    users: Mapping[date, Sequence[int]],
    rows: "pl.DataFrame",
    names: Sequence[str],
) -> "pl.DataFrame":
    """Return some columns of all rollups of some days: of some users as they were written from `rows`, others read."""
    import polars as pl

    frames = [_of_users(rows, users).select(names)]
    for day, ids in users.items():
        others = model.objects.filter(cluster=cluster, day=day).exclude(cluster_user_id__in=ids)
        frames.append(_frame(others.values_list(*names), names).cast(frames[0].schema))
    return pl.concat(frames)


def _replace_hours(cluster: Cluster, users: Mapping[date, Sequence[int]], rows: "pl.DataFrame") -> None:
    """Add up anew the hours of some days; where not all rollups of a day know theirs yet, they stay as they are."""
    import polars as pl

    from telemetry.engine.rollup_columns import HOUR_KEY, cluster_hours
    from telemetry.selectors.recomputation import epoch_of

    names = ("day", *HOUR_KEY, "hours")
    fine = _with_others(RollupDay, cluster, users, rows, names)
    unknown = fine.filter(pl.col("hours").is_null())["day"].unique().to_list()
    for day in set(users) - set(unknown):
        RollupHour.objects.filter(cluster=cluster, hour__gte=epoch_of(day), hour__lt=epoch_of(day) + DAY_S).delete()
    hours = cluster_hours(fine.filter(~pl.col("day").is_in(unknown)))
    _insert(RollupHour, hours.insert_column(0, _same(cluster.pk, hours)))


def _replace_histograms(cluster: Cluster, users: Mapping[date, Sequence[int]], rows: "pl.DataFrame") -> None:
    """Add up anew how long the jobs that ended on some days ran."""
    from telemetry.engine.rollup_columns import histograms

    names = ("day", "actor", "runtimes")
    counts = histograms(_with_others(RollupUser, cluster, users, rows, names))
    RollupHistogram.objects.filter(cluster=cluster, day__in=list(users)).delete()
    _insert(RollupHistogram, counts.insert_column(0, _same(cluster.pk, counts)))


def _frame(rows: "QuerySet[Any, tuple[Any, ...]]", names: Sequence[str]) -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame(list(rows), schema=dict.fromkeys(names, pl.String()) | {"day": pl.Date()}, orient="row")


def _same(cluster_id: int, frame: "pl.DataFrame") -> "pl.Series":
    import polars as pl

    return pl.Series("cluster_id", [cluster_id], dtype=pl.Int64).new_from_index(0, len(frame))


def _insert(model: type[Model], frame: "pl.DataFrame") -> None:
    """Insert rows whose columns are named as the table's: a model instance a row costs several times as much."""
    if frame.is_empty():
        return
    table = connection.ops.quote_name(model._meta.db_table)
    quoted = ", ".join(map(connection.ops.quote_name, frame.columns))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({quoted}) FROM STDIN (FORMAT csv, NULL '\\N')") as copy:
                copy.write(frame.write_csv(include_header=False, quote_style="non_numeric", null_value="\\N"))
            return
        marks = ", ".join(["%s"] * frame.width)
        cursor.executemany(f"INSERT INTO {table} ({quoted}) VALUES ({marks})", frame.rows())  # noqa: S608 - our names

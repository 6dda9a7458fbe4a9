"""What the rollups of some days and hours should say, from the jobs that count in them, in columns.

Spans are half-open [lo, hi) in UTC epoch seconds. Of a job that ran from `start` to `usage_end`, the elapsed time due
at an instant t is `elapsed_s * (t - start) // (usage_end - start)`; a period's piece is the difference of two such
dues, so that the pieces of any cut sum to the elapsed time exactly (as `telemetry.engine.usage.prorate` does it).
"""

from typing import Final

import polars as pl

from telemetry.engine import usage
from telemetry.engine.packed import pack_frame, unpack_frame
from telemetry.engine.slurm.values import FAILED_STATES
from telemetry.engine.tallies import How, Tally

DAY_KEY: Final = ("cluster_user_id", "lab_id", "partition", "qos", "actor", "harness")
USER_KEY: Final = ("cluster_user_id", "lab_id", "actor", "harness")
HOUR_KEY: Final = ("partition", "actor", "harness")
HELD: Final = {"core_s": "cpus", "node_s": "nodes", "gpu_s": "gpus"}  # what a job holds, by the sum it makes
LOST: Final = (*FAILED_STATES, "TIMEOUT", "CANCELLED")

_INT: Final = pl.Int64()
_TEXT: Final = pl.String()
# What is read of a job, by the names of its table.
JOB_SCHEMA: Final[dict[str, pl.DataType]] = {
    "cluster_user_id": _INT, "lab_id": _INT, "partition": _TEXT, "qos": _TEXT, "actor": _TEXT, "harness": _TEXT,
    "state": _TEXT, "submit": _INT, "start": _INT, "end": _INT, "usage_end": _INT, "elapsed_s": _INT, "nodes": _INT,
    "cpus": _INT, "gpus": _INT, "array_tasks": _INT,
}  # fmt: skip

_ENDED: Final = (
    "ended", "ended_never_started", "ended_cancelled", "ended_failed", "ended_timeout", "ended_wall_s", "ended_node_s",
    "ended_wait_node_s", "ended_core_s", "ended_lost_core_s", "wait_s", "waits", "max_cores",
)  # fmt: skip
HOUR_SUMS: Final = ("submissions", *HELD)
DAY_SUMS: Final = ("wall_s", *HELD, "submissions", *_ENDED)
# What is packed into a row of a day: its hours, and how many jobs ran how long.
HOURS: Final = ("hour", *HOUR_SUMS)
RUNTIMES: Final = ("bucket", "jobs")


def day_sums(jobs: pl.DataFrame, lo: int, hi: int) -> pl.DataFrame:
    """Return the rollups of the UTC days from `lo` to `hi`: `day` (a date), `DAY_KEY` and `DAY_SUMS`.

    `jobs` (`JOB_SCHEMA`) must hold every job that was submitted, ran or ended in the span.
    """
    ran = _pieces(jobs, lo, hi, usage.DAY_S, DAY_KEY)
    ended = _ended(jobs, lo, hi).select("period", *DAY_KEY, **_ended_sums())
    counted = pl.concat([ran, _submitted(jobs, lo, hi, usage.DAY_S, DAY_KEY), ended], how="diagonal")
    sums = [pl.col(name).sum() for name in DAY_SUMS if name != "max_cores"]
    most = pl.col("max_cores").max().fill_null(0)
    found = counted.group_by("period", *DAY_KEY).agg(*sums, most)
    return found.select(_date("period"), *DAY_KEY, *DAY_SUMS)


def runtime_counts(jobs: pl.DataFrame, lo: int, hi: int) -> pl.DataFrame:
    """Return how many jobs that ended from `lo` to `hi` ran how long: `day`, `USER_KEY`, `bucket`, `jobs`."""
    ran = _ended(jobs, lo, hi).filter(pl.col("start").is_not_null())
    edges = pl.Series(usage.RUNTIME_EDGES_S, dtype=_INT)
    bucket = edges.search_sorted(ran["elapsed_s"], side="left").cast(_INT).alias("bucket")
    found = ran.with_columns(bucket).group_by("period", *USER_KEY, "bucket").agg(pl.col("array_tasks").sum())
    return found.select(_date("period"), *USER_KEY, "bucket", jobs="array_tasks")


def hour_sums(jobs: pl.DataFrame, lo: int, hi: int) -> pl.DataFrame:
    """Return the sums of the UTC hours from `lo` to `hi`: `day`, `DAY_KEY`, `hour` (of the day) and `HOUR_SUMS`.

    `jobs` as for `day_sums`.
    """
    ran = _pieces(jobs, lo, hi, usage.HOUR_S, DAY_KEY).filter(pl.col("wall_s") > 0).drop("wall_s")
    counted = pl.concat([ran, _submitted(jobs, lo, hi, usage.HOUR_S, DAY_KEY)], how="diagonal")
    found = counted.group_by("period", *DAY_KEY).agg(pl.col(name).sum() for name in HOUR_SUMS)
    hour = pl.col("period") % usage.DAY_S // usage.HOUR_S
    return found.select(_date("period"), *DAY_KEY, hour.alias("hour"), *HOUR_SUMS)


class DayRollups:
    """What the rollups of the UTC days from `lo` to `hi` should say, from blocks of jobs in any order.

    Every job of the users in question that was submitted, ran or ended in the span must come once. Memory grows with
    the rollups, not the jobs.
    """

    def __init__(self, lo: int, hi: int) -> None:
        self._lo, self._hi, self.jobs = lo, hi, 0
        sums: dict[str, How] = dict.fromkeys(DAY_SUMS, "sum")
        self._days = Tally(("day", *DAY_KEY), sums | {"max_cores": "max"})
        self._hours = Tally(("day", *DAY_KEY, "hour"), dict.fromkeys(HOUR_SUMS, "sum"))
        self._runtimes = Tally(("day", *USER_KEY, "bucket"), {"jobs": "sum"})
        self.add(pl.DataFrame(schema=JOB_SCHEMA))

    def add(self, jobs: pl.DataFrame) -> None:
        """Take some jobs (`JOB_SCHEMA`)."""
        self.jobs += len(jobs)
        self._days.add(day_sums(jobs, self._lo, self._hi))
        self._hours.add(hour_sums(jobs, self._lo, self._hi))
        self._runtimes.add(runtime_counts(jobs, self._lo, self._hi))

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return a row a `DAY_KEY` and a row a `USER_KEY`, both with `day` (a date) and `DAY_SUMS`.

        The first have their `hours` packed (`HOURS`), the second the histogram of their `runtimes` (`RUNTIMES`).
        """
        days = self._days.table()
        hours = pack_frame(self._hours.table(), ("day", *DAY_KEY), HOURS, "hours")
        runtimes = pack_frame(self._runtimes.table(), ("day", *USER_KEY), RUNTIMES, "runtimes")
        return _with_text(days, hours, ("day", *DAY_KEY)), _with_text(user_sums(days), runtimes, ("day", *USER_KEY))


def user_sums(days: pl.DataFrame) -> pl.DataFrame:
    """Add `day_sums` up over partitions and QoS: `day`, `USER_KEY` and `DAY_SUMS`."""
    sums = (pl.col(name).max() if name == "max_cores" else pl.col(name).sum() for name in DAY_SUMS)
    return days.group_by("day", *USER_KEY).agg(sums)


def cluster_hours(days: pl.DataFrame) -> pl.DataFrame:
    """Add the hours of rollups up over all users: `hour` (its epoch second), `HOUR_KEY` and `HOUR_SUMS`.

    `days`: a row a rollup with `day` (a date), `HOUR_KEY` and `hours` as `DayRollups` packs them.
    """
    hour = pl.col("day").cast(_INT) * usage.DAY_S + pl.col("hour") * usage.HOUR_S
    rows = unpack_frame(days, "hours", HOURS).with_columns(hour.alias("hour"))
    return rows.group_by("hour", *HOUR_KEY).agg(pl.col(name).sum() for name in HOUR_SUMS)


def histograms(users: pl.DataFrame) -> pl.DataFrame:
    """Add runtime histograms up over everybody: `day`, `actor`, `bucket`, `jobs`.

    `users`: a row a rollup with `day`, `actor` and `runtimes` as `DayRollups` packs them.
    """
    rows = unpack_frame(users, "runtimes", RUNTIMES)
    return rows.group_by("day", "actor", "bucket").agg(pl.col("jobs").sum())


def _with_text(rows: pl.DataFrame, texts: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    return rows.join(texts, on=key, how="left").with_columns(pl.col(texts.columns[-1]).fill_null(""))


def _date(name: str) -> pl.Expr:
    return (pl.col(name) // usage.DAY_S).cast(pl.Int32).cast(pl.Date).alias("day")


def _period_of(instant: str, size_s: int) -> pl.Expr:
    return (pl.col(instant) // size_s * size_s).alias("period")


def _submitted(jobs: pl.DataFrame, lo: int, hi: int, size_s: int, key: tuple[str, ...]) -> pl.DataFrame:
    """Return the submissions of each period; a record that stands for several tasks counts as that many."""
    within = jobs.lazy().filter(pl.col("submit").is_between(lo, hi, closed="left"))
    periods = within.select(_period_of("submit", size_s), *key, submissions="array_tasks")
    return periods.group_by("period", *key).agg(pl.col("submissions").sum()).collect()


def _pieces(jobs: pl.DataFrame, lo: int, hi: int, size_s: int, key: tuple[str, ...]) -> pl.DataFrame:
    """Return, for each period and key, the wall, core, node and GPU seconds of the jobs that ran in it."""
    start, end = pl.col("start"), pl.col("usage_end")
    ran = jobs.lazy().filter((end > start) & (end > lo) & (start < hi))
    first, last = pl.max_horizontal(start, lo) // size_s, (pl.min_horizontal(end, hi) - 1) // size_s
    periods = pl.int_ranges(first, last + 1).alias("period")
    cut = ran.select(periods, *key, "start", "usage_end", "elapsed_s", *HELD.values()).explode("period")
    since, until = pl.max_horizontal(start, pl.col("period") * size_s), (pl.col("period") + 1) * size_s
    piece = _due(pl.min_horizontal(end, until)) - _due(since)
    held = [(piece * pl.col(what)).alias(name) for name, what in HELD.items()]
    told = cut.select((pl.col("period") * size_s).alias("period"), *key, piece.alias("wall_s"), *held)
    return told.group_by("period", *key).agg(pl.col(name).sum() for name in ("wall_s", *HELD)).collect()


def _due(instant: pl.Expr) -> pl.Expr:
    start = pl.col("start")
    return pl.col("elapsed_s") * (instant - start) // (pl.col("usage_end") - start)


def _ended(jobs: pl.DataFrame, lo: int, hi: int) -> pl.DataFrame:
    """Return the jobs that ended in the span, each with the day it ended on as its period."""
    within = jobs.filter(pl.col("end").is_between(lo, hi, closed="left"))
    return within.with_columns(_period_of("end", usage.DAY_S))


def _ended_sums() -> dict[str, pl.Expr]:
    """Return what each ended job adds to its day."""
    started = pl.col("start").is_not_null()
    ran = started & (pl.col("elapsed_s") > 0)
    wait = pl.max_horizontal(pl.col("start") - pl.col("submit"), 0)
    tasks, state = pl.col("array_tasks"), pl.col("state")
    core = pl.col("elapsed_s") * pl.col("cpus")
    return {
        "ended": _when(started, tasks),
        "ended_never_started": _when(~started, tasks),
        "ended_cancelled": _when(state == "CANCELLED", tasks),
        "ended_failed": _when(state.is_in(FAILED_STATES), tasks),
        "ended_timeout": _when(state == "TIMEOUT", tasks),
        "ended_wall_s": _when(started, pl.col("elapsed_s")),
        "ended_node_s": _when(ran, pl.col("elapsed_s") * pl.col("nodes")),
        "ended_wait_node_s": _when(ran, wait * pl.col("nodes")),
        "ended_core_s": _when(started, core),
        "ended_lost_core_s": _when(started & state.is_in(LOST), core),
        "wait_s": _when(started, wait * tasks),
        "waits": _when(started, tasks),
        "max_cores": _when(started, pl.col("cpus")),
    }


def _when(holds: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(holds).then(value).otherwise(0)

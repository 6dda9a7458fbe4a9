"""What the rollups of some days and hours should say, from the jobs that count in them, in columns.

Spans are half-open [lo, hi) in UTC epoch seconds. Of a job that ran from `start` to `usage_end`, the elapsed time due
at an instant t is `elapsed_s * (t - start) // (usage_end - start)`; a period's piece is the difference of two such
dues, so that the pieces of any cut sum to the elapsed time exactly.
"""

from collections.abc import Sequence
from typing import Final

import polars as pl

from telemetry.engine import usage
from telemetry.engine.job_outcomes import bucket
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
    "ended_wait_node_s", "ended_core_s", "ended_lost_core_s", "wait_s", "waits",
)  # fmt: skip
_MOST: Final = "max_cores"
HOUR_SUMS: Final = ("submissions", *HELD)
_RAN: Final = ("wall_s", *HOUR_SUMS)
DAY_SUMS: Final = (*_RAN, *_ENDED, _MOST)
# What is packed into a row of a day: its hours, and how many jobs ran how long.
HOURS: Final = ("hour", *HOUR_SUMS)
RUNTIMES: Final = ("bucket", "jobs")


class DayRollups:
    """What the rollups of the UTC days from `lo` to `hi` should say, from blocks of jobs in any order.

    Every job of the users in question that was submitted, ran or ended in the span must come once. Memory grows with
    the rollups, not the jobs.
    """

    def __init__(self, lo: int, hi: int) -> None:
        self._lo, self._hi, self.jobs = lo, hi, 0
        ended: dict[str, How] = dict.fromkeys(_ENDED, "sum")
        # Grouping by numbers is several times as fast as by six columns: `key` stands for a `DAY_KEY`.
        self._keys = pl.DataFrame(schema={name: JOB_SCHEMA[name] for name in DAY_KEY} | {"key": pl.UInt32()})
        self._hours = Tally(("period", "key"), dict.fromkeys(_RAN, "sum"))
        self._ended = Tally(("day", "key"), ended | {_MOST: "max"})
        self._runtimes = Tally(("day", "key", "bucket"), {"jobs": "sum"})
        self.add(pl.DataFrame(schema=JOB_SCHEMA))

    def add(self, jobs: pl.DataFrame) -> None:
        """Take some jobs (`JOB_SCHEMA`)."""
        self.jobs += len(jobs)
        jobs = jobs.join(self._number(jobs.select(DAY_KEY).unique()), on=DAY_KEY).drop(DAY_KEY)
        ended = jobs.filter(pl.col("end").is_between(self._lo, self._hi, closed="left"))
        ended = ended.with_columns(_day_of(pl.col("end")))
        lo, hi = self._lo, self._hi
        self._hours.add(_sums(pl.concat([_ran(jobs, lo, hi), _submitted(jobs, lo, hi)], how="diagonal")))
        self._ended.add(_ended_sums(ended))
        self._runtimes.add(_runtimes(ended))

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return a row a `DAY_KEY` and a row a `USER_KEY`, both with `day` (a date) and `DAY_SUMS`.

        The first have their `hours` packed (`HOURS`), the second the histogram of their `runtimes` (`RUNTIMES`).
        """
        return self._tables(*(pl.concat(each.groups()) for each in (self._hours, self._ended, self._runtimes)))

    def cut(self, behind: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return `tables` of the days before the instant `behind`, a midnight, and forget them."""
        before = _day_of(pl.lit(behind))
        hours = self._hours.cut(pl.col("period") < behind // usage.HOUR_S)
        return self._tables(hours, *(each.cut(pl.col("day") < before) for each in (self._ended, self._runtimes)))

    def _number(self, found: pl.DataFrame) -> pl.DataFrame:
        """Return the numbers of some distinct keys; those that are new get the next ones."""
        numbered = found.join(self._keys, on=DAY_KEY, how="left")
        new = numbered.filter(pl.col("key").is_null()).drop("key").with_row_index("key", len(self._keys))
        new = new.select(self._keys.columns)
        self._keys = pl.concat([self._keys, new])
        return pl.concat([numbered.filter(pl.col("key").is_not_null()), new])

    def _tables(
        self, hours: pl.DataFrame, ended: pl.DataFrame, runtimes: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        key, user_key = ("day", "key"), ("day", "user")
        numbers = self._keys.with_columns(pl.struct(USER_KEY).rank("dense").alias("user"))
        users = numbers.select("key", "user")
        names = numbers.select("user", *USER_KEY).unique("user")
        second = pl.col("period") * usage.HOUR_S
        hours = hours.sort("period").with_columns(_day_of(second), hour=second % usage.DAY_S // usage.HOUR_S)
        runtimes = runtimes.join(users, on="key").group_by("day", "user", "bucket").agg(pl.col("jobs").sum())
        days = _merged(pl.concat([hours, ended], how="diagonal"), key)
        counted = pack_frame(runtimes.sort("bucket"), user_key, RUNTIMES, "runtimes")
        by_user = _with_text(_merged(days.join(users, on="key"), user_key), counted, user_key)
        by_day = _with_text(days, pack_frame(hours, key, HOURS, "hours"), key)
        return (
            by_day.join(self._keys, on="key").select("day", *DAY_KEY, *DAY_SUMS, "hours"),
            by_user.join(names, on="user").select("day", *USER_KEY, *DAY_SUMS, "runtimes"),
        )


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


def _merged(rows: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    sums = (pl.col(name).max() if name == _MOST else pl.col(name).sum() for name in DAY_SUMS)
    return rows.group_by(key).agg(sums).with_columns(pl.col(_MOST).fill_null(0))


def _with_text(rows: pl.DataFrame, texts: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    return rows.join(texts, on=key, how="left").with_columns(pl.col(texts.columns[-1]).fill_null(""))


def _day_of(instant: pl.Expr) -> pl.Expr:
    return (instant // usage.DAY_S).cast(pl.Int32).cast(pl.Date).alias("day")


def _sums(rows: pl.LazyFrame) -> pl.DataFrame:
    """Add up by hour since 1970 (`period`) and `key`: wall seconds and `HOUR_SUMS`."""
    return rows.group_by("period", "key").agg(pl.col(name).sum() for name in _RAN).collect()


def _submitted(jobs: pl.DataFrame, lo: int, hi: int) -> pl.LazyFrame:
    """Return the submissions by hour; a record that stands for several tasks counts as that many."""
    within = jobs.lazy().filter(pl.col("submit").is_between(lo, hi, closed="left"))
    return within.select(pl.col("submit") // usage.HOUR_S, "key", "array_tasks").rename(
        {"submit": "period", "array_tasks": "submissions"}
    )


def _ran(jobs: pl.DataFrame, lo: int, hi: int) -> pl.LazyFrame:
    """Return, by hour, the wall, core, node and GPU seconds of the jobs that ran in it."""
    size_s, start, end = usage.HOUR_S, pl.col("start"), pl.col("usage_end")
    ran = jobs.lazy().filter((end > start) & (end > lo) & (start < hi))
    first, last = pl.max_horizontal(start, lo) // size_s, (pl.min_horizontal(end, hi) - 1) // size_s
    periods = pl.int_ranges(first, last + 1).alias("period")
    cut = ran.select(periods, "key", "start", "usage_end", "elapsed_s", *HELD.values()).explode("period")
    since, until = pl.max_horizontal(start, pl.col("period") * size_s), (pl.col("period") + 1) * size_s
    piece = (_due(pl.min_horizontal(end, until)) - _due(since)).alias("wall_s")
    cut = cut.with_columns(piece).filter(pl.col("wall_s") > 0)
    held = [(pl.col("wall_s") * pl.col(what)).alias(name) for name, what in HELD.items()]
    return cut.select("period", "key", "wall_s", *held)


def _due(instant: pl.Expr) -> pl.Expr:
    start = pl.col("start")
    return pl.col("elapsed_s") * (instant - start) // (pl.col("usage_end") - start)


def _runtimes(ended: pl.DataFrame) -> pl.DataFrame:
    """Count ended jobs by `day`, `key` and `bucket` of their run time: `jobs`."""
    ran = ended.filter(pl.col("start").is_not_null())
    return ran.group_by("day", "key", bucket(pl.col("elapsed_s"))).agg(pl.col("array_tasks").sum().alias("jobs"))


def _ended_sums(ended: pl.DataFrame) -> pl.DataFrame:
    """Add up what each ended job adds to its day, by `day` and `key`."""
    started = pl.col("start").is_not_null()
    ran = started & (pl.col("elapsed_s") > 0)
    wait = pl.max_horizontal(pl.col("start") - pl.col("submit"), 0)
    tasks, state = pl.col("array_tasks"), pl.col("state")
    core = pl.col("elapsed_s") * pl.col("cpus")
    parts = {
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
        _MOST: _when(started, pl.col("cpus")),
    }
    sums = (each.max().alias(name) if name == _MOST else each.sum().alias(name) for name, each in parts.items())
    return ended.group_by("day", "key").agg(sums)


def _when(holds: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(holds).then(value).otherwise(0)

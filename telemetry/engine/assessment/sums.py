"""What is summed over the jobs of a dump, by whom and where; each definition is that of the portal's own rollups."""

from typing import Final

import polars as pl

from telemetry.engine.job_outcomes import bucket, wait
from telemetry.engine.tallies import How, Tally
from telemetry.engine.usage import DAY_S, HOUR_S

SHORT_S: Final = {"within_minute": 60, "within_five": 300}
UTC: Final = "UTC"
_QUARTER_S: Final = HOUR_S // 4  # every zone's offset is a whole number of these
WEEK_HOURS: Final = 7 * 24


def _load() -> dict[str, pl.Expr]:
    """Return what is summed of each job. Shares of a whole are of `over`, waits and short jobs of `ran`."""
    tasks, start, end = pl.col("array_tasks"), pl.col("start_s"), pl.col("end_s")
    ended, started = end.is_not_null(), pl.col("started")
    used = pl.when(started & (end.is_null() | (end > start))).then(pl.col("elapsed_s")).otherwise(0)
    ran, none = ended & started, pl.lit(0, pl.Int64)

    def tasks_where(condition: pl.Expr) -> pl.Expr:
        return pl.when(condition).then(tasks).otherwise(none)

    core_s = used * pl.col("cpus")
    lost = ran & pl.col("outcome").is_in(("cancelled", "failed", "timeout"))
    return {
        "submissions": tasks,
        "over": tasks_where(ended),
        "ran": tasks_where(ran),
        "never_started": tasks_where(ended & ~started),
        **{name: tasks_where(ended & (pl.col("outcome") == name)) for name in ("cancelled", "failed", "timeout")},
        "cancelled_waiting": tasks_where(ended & ~started & (pl.col("outcome") == "cancelled")),
        **{name: tasks_where(ran & (pl.col("elapsed_s") <= limit)) for name, limit in SHORT_S.items()},
        "wall_s": used,
        "core_s": core_s,
        "node_s": used * pl.col("nodes"),
        "gpu_s": used * pl.col("gpus"),
        "ended_core_s": pl.when(ran).then(core_s).otherwise(none),
        "lost_core_s": pl.when(lost).then(core_s).otherwise(none),
        "wait_s": pl.when(ran).then(wait() * tasks).otherwise(none),
    }


LOAD: Final = _load()
_SUMMED: Final[dict[str, How]] = dict.fromkeys(LOAD, "sum")


class Sums:
    """All sums that are small: by user and class, partition, hour of the week, day, and two histograms.

    Hours of the week are those of `zone`, days are UTC's.
    """

    def __init__(self, zone: str = UTC) -> None:
        """Prepare to add. Errors: `ValueError` where there is no such zone."""
        try:
            pl.select(_hour_of_week(pl.lit(0), zone))
        except pl.exceptions.ComputeError:
            raise ValueError(f"{zone} is no time zone") from None
        self.zone = zone
        self.users = Tally(("user", "agent"), _SUMMED)
        self.accounts = Tally(("account", "agent"), {"submissions": "sum"})
        asked: dict[str, How] = {"submissions": "sum", "longest_s": "max", "limits": "sum"}
        self.partitions = Tally(("partition", "user", "agent"), asked)
        self.week = Tally(("hour", "agent"), {"submissions": "sum"})
        self.days = Tally(("day", "agent"), {"submissions": "sum"})
        self.runtimes = Tally(("bucket", "agent"), {"jobs": "sum"})
        self.waits = Tally(("bucket", "agent"), {"jobs": "sum"})
        self.span = Tally(("agent",), {"first_s": "min", "last_s": "max", "ended_s": "max"})

    def add(self, jobs: pl.DataFrame) -> None:
        """Add some jobs, which have their outcome."""
        load = jobs.with_columns(value.alias(name) for name, value in LOAD.items())
        sums, submissions = [pl.col(name).sum() for name in LOAD], pl.col("submissions").sum()
        asked = [
            pl.col("timelimit_s").max().alias("longest_s"),
            pl.col("timelimit_s").count().cast(pl.Int64).alias("limits"),
        ]
        self.partitions.add(load.group_by("partition", "user", "agent").agg(submissions, *asked))
        self.users.add(load.group_by("user", "agent").agg(sums))
        self.accounts.add(load.filter(pl.col("account") != "").group_by("account", "agent").agg(submissions))
        quarters = load.group_by((pl.col("submit_s") // _QUARTER_S).alias("quarter"), "agent").agg(submissions)
        hour = _hour_of_week(pl.col("quarter") * _QUARTER_S, self.zone).alias("hour")
        self.week.add(quarters.group_by(hour, "agent").agg(submissions))
        self.days.add(load.group_by((pl.col("submit_s") // DAY_S).alias("day"), "agent").agg(submissions))
        ran = load.filter(pl.col("ran") > 0)
        for tally, value in ((self.runtimes, pl.col("elapsed_s")), (self.waits, wait())):
            tally.add(ran.group_by(bucket(value), "agent").agg(pl.col("ran").sum().alias("jobs")))
        first, last, ended = pl.col("submit_s").min(), pl.col("submit_s").max(), pl.col("end_s").max()
        self.span.add(jobs.group_by("agent").agg(first.alias("first_s"), last.alias("last_s"), ended.alias("ended_s")))


def _hour_of_week(instant_s: pl.Expr, zone: str) -> pl.Expr:
    """Return the hours since the midnight that Monday begins with, on a zone's clocks."""
    local = pl.from_epoch(instant_s, time_unit="s").dt.replace_time_zone(UTC).dt.convert_time_zone(zone)
    return (local.dt.weekday().cast(pl.Int64) - 1) * 24 + local.dt.hour().cast(pl.Int64)

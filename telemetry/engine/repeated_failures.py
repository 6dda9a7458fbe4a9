"""Failures that come back: jobs of one user that fail in the same way in several submissions (paper §VI-A).

The same way is one template of the command, one state, one exit code and one signal: its signature. Nodes that fail or
do not boot are the site's faults, and work that goes on after a time limit is no failure: `STATES` are what remains.
"""

from typing import Final, NamedTuple

import polars as pl

from telemetry.engine.gaps import instant, lower_median
from telemetry.engine.report_content import Column, Number
from telemetry.engine.tallies import MOST, Tally
from telemetry.engine.usage import DAY_S

STATES: Final = ("FAILED", "OUT_OF_MEMORY")
COLUMNS: Final = (
    Column("share", "Fail twice the same way", "share"), Column("people", "People with failures", "people"),
    Column("repeated", "Of them twice the same way", "people"), Column("again", "Further failures", "submissions"),
    Column("later", "After the first", "share"), Column("other_day", "On another day", "share"),
    Column("median", "Median time between", "s"), Column("untold", "Command not known", "share"),
)  # fmt: skip
_PENDING_ROWS: Final = 500_000
_WHO: Final = ("user", "actor")
_WAY: Final = ("state", "exit_code", "exit_signal")


class Repeats(NamedTuple):
    """The failures of one actor.

    `people` have failures with a signature, `repeated` of them one in two submissions or more. `again` are the further
    submissions that failed in a way that an earlier one had: `later` of them were submitted after the first such
    failure, `other_day` failed on another UTC day than the failure before, a lower median of `median_s` after it.
    `jobs` are all that failed; `untold` of them, of `untold_people`, have no signature, for their command is not known.
    """

    actor: str
    people: int
    repeated: int
    again: int
    later: int
    other_day: int
    median_s: float | None
    jobs: int
    untold: int
    untold_people: int

    @property
    def values(self) -> tuple[Number | None, ...]:
        """What `COLUMNS` ask for."""
        share, untold = _ratio(self.repeated, self.people), _ratio(self.untold, self.jobs)
        later, other_day = _ratio(self.later, self.again), _ratio(self.other_day, self.again)
        return (share, self.people, self.repeated, self.again, later, other_day, self.median_s, untold)


NONE: Final = Repeats("", 0, 0, 0, 0, 0, None, 0, 0, 0)


class RepeatedFailures:
    """Keep when which submission first failed in which way: some 30 bytes for each."""

    def __init__(self) -> None:
        kept = ("same", "submit_s", *_WHO)
        self._failed = Tally(kept, {"end_s": "min"}, split="same", pending_rows=_PENDING_ROWS)
        self._people = Tally(_WHO, {"jobs": "sum", "untold": "sum"})

    def add(self, jobs: pl.DataFrame, templates: pl.Series) -> None:
        """Take jobs that ended in the period, however they did, with the keys of their templates (0: not known)."""
        failed = jobs.select(pl.col("state").is_in(STATES) & pl.col("end_s").is_not_null())["state"]
        told = jobs.filter(failed).with_columns(templates.filter(failed).alias("template"))
        tasks = pl.col("array_tasks").cast(pl.Int64)
        untold = tasks.filter(pl.col("template") == 0).sum()
        self._people.add(told.group_by(_WHO).agg(tasks.sum().alias("jobs"), untold.alias("untold")))
        way = pl.struct(*_WHO, "template", *_WAY).hash().alias("same")
        known = told.filter(pl.col("template") != 0).with_columns(way)
        groups = known.group_by("same", instant("submit_s"), *_WHO)
        self._failed.add(groups.agg(pl.col("end_s").clip(upper_bound=MOST).cast(pl.UInt32).min()))

    def repeats(self) -> list[Repeats]:
        """Return a row for each actor that has failures. Errors: `ValueError` where nothing was added."""
        found = pl.concat(map(_further, self._failed.groups()))
        people = self._people.table()
        return [
            _repeats(actor, people.filter(actor=actor), found.filter(actor=actor))
            for actor in sorted(people["actor"].unique())
        ]


def _further(failed: pl.DataFrame) -> pl.DataFrame:
    """Return the submissions that failed after another one of the same signature had, sums by user and gap."""
    end, last, first = pl.col("end_s").cast(pl.Int64), pl.col("last_s"), pl.col("first_s")
    ordered = failed.sort("same", "end_s", "submit_s").with_columns(
        end.shift(1).over("same").alias("last_s"), end.first().over("same").alias("first_s")
    )
    again = ordered.filter(last.is_not_null()).select(
        *_WHO, (end - last).alias("gap_s"), (pl.col("submit_s") > first).alias("later"),
        (end // DAY_S != last // DAY_S).alias("other_day"),
    )  # fmt: skip
    return again.group_by(*_WHO, "gap_s").agg(
        pl.len().cast(pl.Int64).alias("jobs"), pl.col("later", "other_day").cast(pl.Int64).sum()
    )


def _repeats(actor: str, people: pl.DataFrame, further: pl.DataFrame) -> Repeats:
    again, later, other_day = (int(further[name].sum()) for name in ("jobs", "later", "other_day"))
    told, untold = people.filter(pl.col("jobs") > pl.col("untold")), people.filter(pl.col("untold") > 0)
    return Repeats(
        actor, len(told), further["user"].n_unique(), again, later, other_day, lower_median(further),
        int(people["jobs"].sum()), int(people["untold"].sum()), len(untold),
    )  # fmt: skip


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None

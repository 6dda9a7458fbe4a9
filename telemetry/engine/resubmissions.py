"""What comes after a job that came to nothing: the next submission of the same by the same user, and how soon.

"The same" is the job's name, its script and its folder. Gaps run from the end of the one to the submission of the next;
a job's own requeues are not submissions. Kept are 64 bits and a time for each submission, and for each end as much.
"""

from typing import Final, NamedTuple

import polars as pl

from telemetry.engine.gaps import instant, lower_median, next_gaps
from telemetry.engine.iteration import OUTCOME_NAMES, WITHIN_MINUTES
from telemetry.engine.tallies import MOST, How, Tally

_PENDING_ROWS: Final = 500_000
_IN_PLACE: Final = ("user", "job_name", "work_dir")
LOST: Final = tuple(OUTCOME_NAMES)
_OUTCOME: Final = pl.Enum(LOST)


class Gaps(NamedTuple):
    """Jobs of one kind of end and one actor that came to nothing, and those of them that were submitted again within
    `WITHIN_MINUTES`, one number each; `median_s` is of those within the last of these."""

    outcome: str
    actor: str
    jobs: int
    again: tuple[int, ...]
    median_s: float | None


class Resubmissions:
    """Keep who submitted what when, and what came to nothing when; `with_memory` also the memory of submissions."""

    def __init__(self, *, with_memory: bool = False) -> None:
        self._memory = [memory_mib()] if with_memory else []
        kept: dict[str, How] = {"memory_mib": "max"} if with_memory else {}
        self.submitted = Tally(("same", "submit_s"), kept, split="same", pending_rows=_PENDING_ROWS)
        keys = ("same", "end_s", "outcome", "actor")
        self._ended = Tally(keys, {"jobs": "sum"}, split="same", pending_rows=_PENDING_ROWS)

    def add(self, jobs: pl.DataFrame, scripts: pl.Series) -> None:
        """Take some jobs with their `outcome` and `actor`, and with the keys of their scripts."""
        told = jobs.with_columns(same_work(scripts))
        submitted = told.filter(pl.col("restarts") == 0)
        self.submitted.add(submitted.select("same", instant("submit_s"), *self._memory).unique())
        lost = told.filter(pl.col("outcome").is_in(LOST) & pl.col("end_s").is_not_null())
        groups = lost.group_by("same", instant("end_s"), pl.col("outcome").cast(_OUTCOME), "actor")
        self._ended.add(groups.agg(pl.col("array_tasks").sum().clip(upper_bound=MOST).cast(pl.UInt32).alias("jobs")))

    def gaps(self) -> list[Gaps]:
        """Return a row for each outcome and actor there was."""
        found = pl.concat(
            gaps.group_by("outcome", "actor", "gap_s").agg(pl.col("jobs").cast(pl.Int64).sum())
            for gaps in next_gaps(self.submitted, self._ended)
        )
        groups = found.with_columns(pl.col("outcome").cast(pl.String)).group_by("outcome", "actor")
        return [
            _gaps(str(outcome), str(actor), group)
            for (outcome, actor), group in sorted(groups, key=lambda each: each[0])
        ]


def same_work(scripts: pl.Series) -> pl.Expr:
    """Return the column `same` of jobs, equal for the same work of the same user; `scripts` are their scripts' keys."""
    return pl.struct(*_IN_PLACE, scripts.alias("script")).hash().alias("same")


def memory_mib() -> pl.Expr:
    """Return the column `memory_mib` of jobs; null where it is not known."""
    size = pl.col("mem_bytes")
    return pl.when(size > 0).then(size // 2**20).clip(upper_bound=MOST).cast(pl.UInt32).alias("memory_mib")


def _gaps(outcome: str, actor: str, group: pl.DataFrame) -> Gaps:
    again = tuple(int(group.filter(pl.col("gap_s") <= minutes * 60)["jobs"].sum()) for minutes in WITHIN_MINUTES)
    near = group.filter(pl.col("gap_s") <= WITHIN_MINUTES[-1] * 60).group_by("gap_s").agg(pl.col("jobs").sum())
    return Gaps(outcome, actor, int(group["jobs"].sum()), again, lower_median(near))

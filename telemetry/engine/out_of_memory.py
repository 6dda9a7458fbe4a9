"""Jobs that ended out of memory, and the memory of the next submission of the same (paper §VI-A).

"The same" is as in `resubmissions`. Memory is that of the whole job in MiB, as Slurm counts it: what was allocated or,
of a job that has not started, what was asked for. None, and 0, which asks for whole nodes, are not known.
"""

from typing import Final, NamedTuple

import polars as pl

from telemetry.engine.gaps import instant, next_gaps
from telemetry.engine.iteration import WITHIN_MINUTES
from telemetry.engine.resubmissions import memory_mib, same_work
from telemetry.engine.tallies import MOST, Tally

WITHIN_S: Final = WITHIN_MINUTES[-1] * 60
_STATE: Final = "OUT_OF_MEMORY"
_WHO: Final = ("user", "actor", "harness")
_NEXT: Final = ("same", "more", "less", "unknown")


class MemoryAgain(NamedTuple):
    """One user's jobs that ended out of memory, as one actor with one harness, and what those submitted again within
    `WITHIN_S` had: the same memory, more, less, or an amount that is not known before or after."""

    user: int
    actor: str
    harness: str
    jobs: int
    same: int
    more: int
    less: int
    unknown: int

    @property
    def again(self) -> int:
        return self.same + self.more + self.less + self.unknown


class OutOfMemory:
    """Keep what ended out of memory when, and with how much."""

    def __init__(self) -> None:
        self._ended = Tally(("same", "end_s", *_WHO, "had_mib"), {"jobs": "sum"}, split="same")

    def add(self, jobs: pl.DataFrame, scripts: pl.Series) -> None:
        """Take jobs that ended in the period, however they did, with the keys of their scripts."""
        lost = jobs.select((pl.col("state") == _STATE) & pl.col("end_s").is_not_null())["state"]
        told = jobs.filter(lost).with_columns(same_work(scripts.filter(lost)), memory_mib().alias("had_mib"))
        groups = told.group_by("same", instant("end_s"), *_WHO, "had_mib")
        self._ended.add(groups.agg(pl.col("array_tasks").sum().clip(upper_bound=MOST).cast(pl.UInt32).alias("jobs")))

    def again(self, submitted: Tally) -> list[MemoryAgain]:
        """Return a row for each user, actor and harness, given all submissions with their `memory_mib`.

        Of several in the same second the largest counts. Errors: `ValueError` where nothing was added.
        """
        had, then, gap = pl.col("had_mib"), pl.col("memory_mib"), pl.col("gap_s")
        verdict = (
            pl.when(gap.is_null() | (gap > WITHIN_S)).then(pl.lit("none"))
            .when(had.is_null() | then.is_null()).then(pl.lit("unknown"))
            .when(then == had).then(pl.lit("same"))
            .when(then > had).then(pl.lit("more")).otherwise(pl.lit("less"))
        ).alias("verdict")  # fmt: skip
        found = pl.concat(
            gaps.group_by(*_WHO, verdict).agg(pl.col("jobs").cast(pl.Int64).sum())
            for gaps in next_gaps(submitted, self._ended)
        )
        sums = (pl.col("jobs").filter(pl.col("verdict") == name).sum().alias(name) for name in _NEXT)
        table = found.group_by(_WHO).agg(pl.col("jobs").sum().alias("all"), *sums).sort(_WHO)
        return [MemoryAgain(*row) for row in table.iter_rows()]

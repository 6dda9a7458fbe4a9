"""What only the jobs of a period together tell: work that people share, what is submitted again, how soon, waits.

Sums of single jobs are in the rollups; this looks at all jobs once, block by block.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from telemetry.engine import usage
from telemetry.engine.cancellations import Cancellations, Pause
from telemetry.engine.iteration import WITHIN_MINUTES
from telemetry.engine.job_outcomes import bucket, wait, with_outcome
from telemetry.engine.likeness import Alike, Likeness
from telemetry.engine.out_of_memory import MemoryAgain, OutOfMemory
from telemetry.engine.repeated_failures import RepeatedFailures, Repeats
from telemetry.engine.resubmissions import Gaps, Resubmissions
from telemetry.engine.similarity_columns import key_columns
from telemetry.engine.tallies import Tally

# Submissions this long after the period still answer what came to nothing within it.
AFTER_S: Final = WITHIN_MINUTES[-1] * 60
_INT: Final = pl.Int64()
_TEXT: Final = pl.String()
SCHEMA: Final[dict[str, pl.DataType]] = {
    "user": _INT, "actor": _TEXT, "state": _TEXT, "submit_s": _INT, "start_s": _INT, "end_s": _INT, "restarts": _INT,
    "array_tasks": _INT, "job_name": _TEXT, "work_dir": _TEXT, "submit_line": _TEXT, "harness": _TEXT,
    "mem_bytes": _INT, "exit_code": _INT, "exit_signal": _INT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Waits:
    """How long jobs of one actor had waited: their median, and how many there were."""

    jobs: int
    median_s: float | None


@dataclass(frozen=True, slots=True)
class Study:
    """What was found. `submitted` are the jobs submitted in the period, those of array tasks not yet split too."""

    submitted: int
    alike: tuple[Alike, ...]
    gaps: tuple[Gaps, ...]
    pauses: tuple[Pause, ...]
    waits: dict[str, Waits]
    out_of_memory: tuple[MemoryAgain, ...] = ()
    failures: tuple[Repeats, ...] = ()


class PeriodStudy:
    """Fold the jobs of the period [lo, hi) into a `Study`: each that was submitted from `lo` until `AFTER_S` behind
    `hi`, or ended within it, once, in frames of `SCHEMA` and in any order."""

    def __init__(self, lo: int, hi: int) -> None:
        self._lo, self._hi, self._submitted, self._any = lo, hi, 0, False
        self._likeness, self._resubmissions = Likeness(), Resubmissions(with_memory=True)
        self._cancellations, self._out_of_memory = Cancellations(), OutOfMemory()
        self._failures = RepeatedFailures()
        self._waits = Tally(("bucket", "actor"), {"jobs": "sum"})

    def add(self, jobs: pl.DataFrame) -> None:
        """Take some jobs."""
        if jobs.is_empty():
            return
        self._any = True
        keys, told = key_columns(jobs), with_outcome(jobs)
        submitted = jobs.select(self._within("submit_s"))["submit_s"]
        self._submitted += int(jobs.filter(submitted)["array_tasks"].sum())
        self._likeness.add(jobs.filter(submitted), keys.filter(submitted))
        self._cancellations.add(told)
        here = pl.when(self._within("end_s")).then("outcome").otherwise(pl.lit("elsewhere")).alias("outcome")
        self._resubmissions.add(told.with_columns(here), keys["script"])
        ended = jobs.select(self._within("end_s"))["end_s"]
        self._out_of_memory.add(jobs.filter(ended), keys["script"].filter(ended))
        self._failures.add(jobs.filter(ended), keys["template"].filter(ended))
        ran = jobs.filter(self._within("end_s") & pl.col("start_s").is_not_null())
        self._waits.add(ran.group_by(bucket(wait()), "actor").agg(pl.col("array_tasks").sum().alias("jobs")))

    def finish(self) -> Study:
        """Return what was found, and forget the jobs."""
        if not self._any:
            return Study(0, (), (), (), {})
        waits = {
            str(actor): _waits(group) for (actor,), group in self._waits.table().group_by("actor", maintain_order=True)
        }
        return Study(
            self._submitted,
            tuple(self._likeness.table()),
            tuple(self._resubmissions.gaps()),
            tuple(self._cancellations.pauses(lo=self._lo, hi=self._hi)),
            waits,
            tuple(self._out_of_memory.again(self._resubmissions.submitted)),
            tuple(self._failures.repeats()),
        )

    def _within(self, name: str) -> pl.Expr:
        return ((pl.col(name) >= self._lo) & (pl.col(name) < self._hi)).fill_null(value=False)


def _waits(group: pl.DataFrame) -> Waits:
    counts = [0] * usage.RUNTIME_BUCKETS
    for number, jobs in group.select("bucket", "jobs").iter_rows():
        counts[number] += jobs
    return Waits(sum(counts), usage.histogram_median(counts))

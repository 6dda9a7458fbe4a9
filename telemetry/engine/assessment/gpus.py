"""What jobs did with their GPUs: exports of GPU use laid upon the jobs of the dumps, as the portal lays them.

In memory: 50 bytes a reading, and as much for each job that there is a reading of. Of all others their sums.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import BinaryIO, Final

import polars as pl

from telemetry.engine.gpu_exports import read_export
from telemetry.engine.gpu_use import CLOCKS_DIFFER_S, HEAVY_PERCENT, GpuReading, Quadrant
from telemetry.engine.slurm.lines import Line, read_lines
from telemetry.engine.slurm.records import Rejected
from telemetry.engine.tallies import How, Tally

UNMEASURED: Final = ""
_SCHEMA: Final[dict[str, type[pl.DataType]]] = {
    "raw_job_id": pl.Int64, "measured_s": pl.Int64, "gpu": pl.String, "compute": pl.Float64, "memory": pl.Float64,
    "used": pl.Float64, "is_peak": pl.Boolean,
}  # fmt: skip
_JOB: Final = ("raw_job_id", "start_s", "end_s", "elapsed_s", "gpus", "agent")
_SUMS: Final[dict[str, How]] = dict.fromkeys(("jobs", "held_s", "measured_s", "stranded_s", "peaks"), "sum")
_SLICE: Final = 50_000


class Readings:
    """Readings of GPUs, of any number of files; `aside` counts the lines that could not be taken, by reason."""

    def __init__(self) -> None:
        self.aside: Counter[str] = Counter()
        self._frames = [_frame([])]

    def read(self, source: BinaryIO, *, note: Callable[[int], None] = lambda offset: None) -> None:
        """Read a file of jobstats or DCGM, told apart by its header; `note` is told how many bytes were read.

        Errors: `FormatError` when it is neither.
        """
        lines = read_lines(source)
        header = next((line.text for line in lines), "")
        form = "dcgm" if "dcgm_fi_" in header.lower() else "jobstats"
        outcomes = read_export(chain([header], _texts(lines, note)), format=form)
        while found := list(islice(outcomes, _SLICE)):
            self.aside.update(one.reason_code for one in found if isinstance(one, Rejected))
            self._frames.append(_frame([one for one in found if isinstance(one, GpuReading)]))

    def table(self) -> pl.DataFrame:
        """Return a row a reading."""
        return pl.concat(self._frames)


@dataclass(frozen=True, slots=True)
class GpuUse:
    """What jobs with GPUs came to that ended after having started, by class and quadrant ("": nobody measured them).

    `held_s` and `measured_s` are GPU-seconds, `stranded_s` those that nothing needed; `peaks` counts jobs whose memory
    is a peak. `unmatched` are readings of no job of the dumps, `aside` lines that could not be taken.
    """

    sums: pl.DataFrame
    readings: int
    unmatched: int
    aside: Counter[str]


class GpuJobs:
    """Keep the jobs that there are readings of, and sums of those without."""

    def __init__(self, readings: Readings) -> None:
        self._readings, self._table = readings, readings.table()
        self._ids = self._table.select(pl.col("raw_job_id").unique())
        self._measured: list[pl.DataFrame] = []
        self._sums = Tally(("agent", "quadrant"), _SUMS)

    def add(self, jobs: pl.DataFrame) -> None:
        """Take some jobs, each once."""
        over = pl.col("end_s").is_not_null() & pl.col("started") & (pl.col("gpus") > 0)
        own = jobs.filter(over).select(_JOB)
        self._measured.append(own.join(self._ids, on="raw_job_id", how="semi"))
        self._sums.add(_sum(_without_use(own.join(self._ids, on="raw_job_id", how="anti"))))

    def finish(self) -> GpuUse:
        """Lay the readings upon the jobs, and sum up."""
        jobs = pl.concat(self._measured).with_row_index("job")
        matched = _match(self._table, jobs)
        use = matched.sort("measured_s").unique(("job", "gpu"), keep="last").group_by("job").agg(
            pl.col("compute", "memory", "used").mean(), pl.len().cast(pl.Int64).alias("number"), pl.col("is_peak").any()
        )  # fmt: skip
        self._sums.add(_sum(_with_use(jobs.join(use, on="job", how="inner"))))
        self._sums.add(_sum(_without_use(jobs.join(use, on="job", how="anti"))))
        unmatched = len(self._table) - len(matched)
        return GpuUse(self._sums.table(), len(self._table), unmatched, self._readings.aside)


def _texts(lines: Iterable[Line], note: Callable[[int], None]) -> Iterator[str]:
    for line in lines:
        note(line.end)
        yield line.text


def _frame(readings: list[GpuReading]) -> pl.DataFrame:
    rows = [
        (one.raw_job_id, one.measured_s, one.gpu, one.compute_percent, one.memory_percent, one.used_percent,
         one.memory_is_peak)
        for one in readings
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row").with_columns(pl.col("gpu").hash())


def _match(readings: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Give each reading the run that had begun last when it was measured; ids recycle, and a requeue starts anew.

    Clocks may differ by some minutes: by our own first. What was measured later than that after its end is of no run.
    """
    runs = jobs.select("job", "raw_job_id", "start_s", "end_s").sort("start_s")
    exact = _begun(readings, runs, 0)
    near = _begun(exact.filter(pl.col("job").is_null()).drop("job", "end_s"), runs, CLOCKS_DIFFER_S)
    both = pl.concat([exact.filter(pl.col("job").is_not_null()), near])
    return both.filter(pl.col("job").is_not_null() & (pl.col("measured_s") <= pl.col("end_s") + CLOCKS_DIFFER_S))


def _begun(readings: pl.DataFrame, runs: pl.DataFrame, late_s: int) -> pl.DataFrame:
    at = readings.with_columns((pl.col("measured_s") + late_s).alias("at")).sort("at")
    found = at.join_asof(
        runs, left_on="at", right_on="start_s", by="raw_job_id", strategy="backward", check_sortedness=False
    )
    return found.select(*readings.columns, "job", "end_s")


def _with_use(jobs: pl.DataFrame) -> pl.DataFrame:
    compute, memory = pl.col("compute") >= HEAVY_PERCENT, pl.col("memory") >= HEAVY_PERCENT
    with_memory = pl.when(memory).then(pl.lit(Quadrant.BOTH.value)).otherwise(pl.lit(Quadrant.COMPUTE.value))
    without = pl.when(memory).then(pl.lit(Quadrant.MEMORY.value)).otherwise(pl.lit(Quadrant.LOW.value))
    # Two sources may name a GPU each in its own way: no more was measured than there was.
    measured = pl.min_horizontal("number", "gpus") * pl.col("elapsed_s")
    return jobs.with_columns(
        pl.when(compute).then(with_memory).otherwise(without).alias("quadrant"), measured.alias("measured_s"),
        (measured * (100 - pl.col("used").clip(upper_bound=100)) / 100).alias("stranded_s"),
        pl.col("is_peak").cast(pl.Int64).alias("peaks"),
    )  # fmt: skip


def _without_use(jobs: pl.DataFrame) -> pl.DataFrame:
    none = pl.lit(0, pl.Int64)
    return jobs.with_columns(
        pl.lit(UNMEASURED).alias("quadrant"), none.alias("measured_s"), pl.lit(0.0).alias("stranded_s"),
        none.alias("peaks"),
    )  # fmt: skip


def _sum(jobs: pl.DataFrame) -> pl.DataFrame:
    held = (pl.col("gpus") * pl.col("elapsed_s")).sum().alias("held_s")
    sums = pl.col("measured_s", "stranded_s", "peaks").sum()
    return jobs.group_by("agent", "quadrant").agg(pl.len().cast(pl.Int64).alias("jobs"), held, sums)

"""Records of jobs that have not ended: the last word on each, by the rule of ingest."""

from typing import Final

import polars as pl

from telemetry.engine.assessment.seen import keys_of
from telemetry.engine.reports import Known, judge_report
from telemetry.engine.touched import Footprint

_PENDING_ROWS: Final = 100_000


class Waiting:
    """Keep what was told of each job last. In memory: a record a job, and as many again that may replace it."""

    def __init__(self, schema: dict[str, pl.DataType]) -> None:
        self._told = [pl.DataFrame(schema=schema)]
        self._rows = self._settled = 0

    def add(self, jobs: pl.DataFrame) -> None:
        """Take records in the order in which they were told."""
        self._told.append(jobs)
        self._rows += len(jobs)
        if self._rows > max(_PENDING_ROWS, self._settled):
            self._told = [self.last()]
            self._settled, self._rows = len(self._told[0]), 0

    def last(self) -> pl.DataFrame:
        """Return one record of each job."""
        told = pl.concat(self._told)
        told = told.with_columns(keys_of(told), pl.int_range(pl.len()).alias("at"))
        several = told.filter(pl.col("key").is_duplicated())
        chosen = pl.Series(_judge(several), dtype=pl.Int64)
        return told.filter(~pl.col("key").is_duplicated() | pl.col("at").is_in(chosen.implode())).drop("key", "at")


def _judge(told: pl.DataFrame) -> list[int]:
    """Return which records of each job is the last word."""
    known: dict[int, tuple[int, Known]] = {}
    rows = told.select("key", "at", "state", "submit_s", "start_s", "elapsed_s").iter_rows()
    for key, at, state, submit_s, start_s, elapsed_s in rows:
        before = known[key][1] if key in known else None
        if judge_report(before, digest=at, state=state, start_s=start_s, elapsed_s=elapsed_s) != "late":
            known[key] = at, Known(at, state, Footprint(0, submit_s, start_s, None, elapsed_s, ()))
    return [at for at, _ in known.values()]

"""Which records were seen before: dumps overlap, and a job counts once.

64 bits of a record's key are kept, not the record. Dumps come in the order of time, so a block is compared with those
alone whose submissions overlap its own.
"""

from typing import NamedTuple

import polars as pl


class _Kept(NamedTuple):
    first_s: int
    last_s: int
    keys: pl.Series


class Seen:
    """Remember the keys of jobs (cluster, job id, submit)."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []

    def only_new(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Return those jobs that were not seen before, each once, in their order, and remember them."""
        if jobs.is_empty():
            return jobs
        keyed = jobs.with_columns(keys_of(jobs)).unique("key", keep="first", maintain_order=True)
        keyed = keyed.filter(~self._among_kept(keyed))
        if not keyed.is_empty():
            self._kept.append(_Kept(*_span(keyed), keyed["key"].sort()))
        return keyed.drop("key")

    def among(self, jobs: pl.DataFrame) -> pl.Series:
        """Say of each job whether it was seen."""
        return self._among_kept(jobs.with_columns(keys_of(jobs)))

    def _among_kept(self, keyed: pl.DataFrame) -> pl.Series:
        found = pl.repeat(False, len(keyed), dtype=pl.Boolean, eager=True)
        if keyed.is_empty():
            return found
        first, last = _span(keyed)
        for kept in self._kept:
            if kept.first_s <= last and first <= kept.last_s:
                found = found | keyed["key"].is_in(kept.keys.implode())
        return found


def keys_of(jobs: pl.DataFrame) -> pl.Series:
    """Return the key of each job; Slurm's cluster names have no case."""
    key = pl.struct(pl.col("cluster").str.to_lowercase(), "raw_job_id", "submit_s").hash()
    return jobs.select(key.alias("key"))["key"]


def _span(jobs: pl.DataFrame) -> tuple[int, int]:
    submits = jobs["submit_s"]
    return int(submits.min()), int(submits.max())  # type: ignore[arg-type]

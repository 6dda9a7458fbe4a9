"""Which records were seen before: dumps overlap, and a job counts once.

64 bits of a record's key are kept, not the record. Dumps come in the order of time, so a block is compared with those
alone whose submissions overlap its own; where they are many, for a dump in another order, they become one.
"""

from typing import Final, NamedTuple

import polars as pl

_MANY: Final = 32


class _Kept(NamedTuple):
    """Sorted keys, and between which submissions they are."""

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
            self._keep(_Kept(*_span(keyed), keyed["key"].sort()))
        return keyed.drop("key")

    def among(self, jobs: pl.DataFrame) -> pl.Series:
        """Say of each job whether it was seen."""
        return self._among_kept(jobs.with_columns(keys_of(jobs)))

    def _among_kept(self, keyed: pl.DataFrame) -> pl.Series:
        found = pl.repeat(False, len(keyed), dtype=pl.Boolean, eager=True)
        if not keyed.is_empty():
            for kept in self._overlapping(*_span(keyed)):
                at = kept.keys.search_sorted(keyed["key"]).clip(upper_bound=len(kept.keys) - 1)
                found = found | (kept.keys.gather(at) == keyed["key"])
        return found

    def _overlapping(self, first_s: int, last_s: int) -> list[_Kept]:
        return [kept for kept in self._kept if kept.first_s <= last_s and first_s <= kept.last_s]

    def _keep(self, new: _Kept) -> None:
        near = [*self._overlapping(new.first_s, new.last_s), new]
        if len(near) <= _MANY:
            self._kept.append(new)
            return
        first, last = min(kept.first_s for kept in near), max(kept.last_s for kept in near)
        far = [kept for kept in self._kept if not any(kept is other for other in near)]
        self._kept = [*far, _Kept(first, last, pl.concat([kept.keys for kept in near]).sort())]


def keys_of(jobs: pl.DataFrame) -> pl.Series:
    """Return the key of each job; Slurm's cluster names have no case."""
    key = pl.struct(pl.col("cluster").str.to_lowercase(), "raw_job_id", "submit_s").hash()
    return jobs.select(key.alias("key"))["key"]


def _span(jobs: pl.DataFrame) -> tuple[int, int]:
    submits = jobs["submit_s"]
    return int(submits.min()), int(submits.max())  # type: ignore[arg-type]

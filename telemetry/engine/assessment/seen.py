"""Which records were seen before: dumps overlap, and a job counts once, as the last word on it has it.

64 bits of a record's key are kept and 64 of what it said, not the record. Dumps come in the order of time, so a block
is compared with those alone whose submissions overlap its own; where they are many, for a dump in another order, they
become one. A later record that says something else takes the place of the one that was counted, as at ingest: which
one that is, is known when all were seen, so the dumps are then read once more.
"""

from typing import Final, NamedTuple

import polars as pl

from telemetry.engine.tallies import Tally

_MANY: Final = 32
_NONE: Final = pl.DataFrame(schema={"key": pl.UInt64, "at": pl.Int64})


class _Kept(NamedTuple):
    """Keys in their order with what was said, and between which submissions they are."""

    first_s: int
    last_s: int
    told: pl.DataFrame


class Seen:
    """Remember the records of jobs (cluster, job id, submit), each with a digest of what it says.

    `last` says of jobs whose records differ which of these counts: the number of it among all that are asked about.
    """

    def __init__(self, last: pl.DataFrame | None = None) -> None:
        self._kept: list[_Kept] = []
        self._last, self._number = last, 0
        self._again = Tally(("key",), {"at": "max", "differs": "max"}, split="key")
        self._has_again = False

    def only_new(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Return those jobs that are to be counted, each once, in their order, and remember them."""
        if jobs.is_empty():
            return jobs
        numbers = pl.int_range(self._number, self._number + len(jobs), dtype=pl.Int64, eager=True).alias("at")
        self._number += len(jobs)
        keyed = jobs.with_columns(keys_of(jobs), _said_by(jobs), numbers)
        if self._last is not None:
            counts = keyed.join(self._last, on="key", how="left", maintain_order="left", suffix="_last")["at_last"]
            keyed = keyed.filter(counts.is_null() | (counts == keyed["at"]))
        is_new = keyed["key"].is_first_distinct() & self._said_before(keyed).is_null()
        new = keyed.filter(is_new)
        if not new.is_empty():
            self._keep(_Kept(*_span(new), new.select("key", "said").sort("key")))
        self._note(keyed.filter(~is_new))
        return new.drop("key", "said", "at")

    def among(self, jobs: pl.DataFrame) -> pl.Series:
        """Say of each job whether it was seen."""
        return self._said_before(jobs.with_columns(keys_of(jobs))).is_not_null()

    def last_words(self) -> pl.DataFrame:
        """Return the jobs whose records differ, each with the number of the last of them."""
        if not self._has_again or self._last is not None:
            return _NONE
        return pl.concat(part.filter("differs").select("key", "at") for part in self._again.groups())

    def _note(self, again: pl.DataFrame) -> None:
        """Remember which records came again, and whether they said something else than the first."""
        if not again.is_empty():
            self._has_again = True
            differs = (again["said"] != self._said_before(again)).alias("differs")
            self._again.add(again.select("key", "at", differs))

    def _said_before(self, keyed: pl.DataFrame) -> pl.Series:
        """Return what is kept of each record; null where there is nothing."""
        found = pl.repeat(None, len(keyed), dtype=pl.UInt64, eager=True)
        if not keyed.is_empty():
            for kept in self._overlapping(*_span(keyed)):
                at = kept.told["key"].search_sorted(keyed["key"]).clip(upper_bound=len(kept.told) - 1)
                is_there = kept.told["key"].gather(at) == keyed["key"]
                found = kept.told["said"].gather(at).zip_with(is_there, found)
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
        self._kept = [*far, _Kept(first, last, pl.concat([kept.told for kept in near]).sort("key"))]


def keys_of(jobs: pl.DataFrame) -> pl.Series:
    """Return the key of each job; Slurm's cluster names have no case."""
    key = pl.struct(pl.col("cluster").str.to_lowercase(), "raw_job_id", "submit_s").hash()
    return jobs.select(key.alias("key"))["key"]


def _said_by(jobs: pl.DataFrame) -> pl.Series:
    return jobs.select(pl.struct(pl.all()).hash().alias("said"))["said"]


def _span(jobs: pl.DataFrame) -> tuple[int, int]:
    submits = jobs["submit_s"]
    return int(submits.min()), int(submits.max())  # type: ignore[arg-type]

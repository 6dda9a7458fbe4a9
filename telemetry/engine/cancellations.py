"""How soon somebody acts again after having cancelled jobs (paper §IV-A): the next submission or cancellation.

An act is a second in which a login name submitted or cancelled, however many jobs: `scancel` of an array is one.
"""

from typing import Final, NamedTuple

import polars as pl

from telemetry.engine.gaps import instant, lower_median, next_gaps
from telemetry.engine.tallies import Tally

_PENDING_ROWS: Final = 500_000


class Pause(NamedTuple):
    """The cancellations of one actor, those of them that an act followed, and the median time until then."""

    actor: str
    cancellations: int
    followed: int
    median_s: float | None


class Cancellations:
    """Keep who acted when, and who cancelled when."""

    def __init__(self) -> None:
        self._acts = Tally(("same", "submit_s"), {}, split="same", pending_rows=_PENDING_ROWS)
        self._cancelled = Tally(("same", "end_s", "actor"), {}, split="same", pending_rows=_PENDING_ROWS)

    def add(self, jobs: pl.DataFrame) -> None:
        """Take some jobs with their `outcome` and `actor`. What was submitted counts, and what was cancelled."""
        told = jobs.with_columns(pl.col("user").hash().alias("same"))
        submitted = told.filter(pl.col("restarts") == 0).select("same", instant("submit_s"))
        is_cancelled = (pl.col("outcome") == "cancelled") & pl.col("end_s").is_not_null()
        cancelled = told.filter(is_cancelled).select("same", instant("end_s"), "actor")
        again = cancelled.select("same", pl.col("end_s").alias("submit_s"))
        self._acts.add(pl.concat([submitted, again]).unique())
        self._cancelled.add(cancelled.unique())

    def pauses(self, *, lo: int, hi: int) -> list[Pause]:
        """Return a row for each actor that cancelled within [lo, hi). Errors: `ValueError` where nothing was added."""
        inside = (pl.col("end_s") >= lo) & (pl.col("end_s") < hi)
        found = pl.concat(
            gaps.filter(inside).group_by("actor", "gap_s").agg(pl.len().cast(pl.Int64).alias("jobs"))
            for gaps in next_gaps(self._acts, self._cancelled)
        )
        return [
            _pause(str(actor), group) for (actor,), group in sorted(found.group_by("actor"), key=lambda one: one[0])
        ]


def _pause(actor: str, group: pl.DataFrame) -> Pause:
    followed = group.filter(pl.col("gap_s").is_not_null()).group_by("gap_s").agg(pl.col("jobs").sum())
    return Pause(actor, int(group["jobs"].sum()), int(followed["jobs"].sum()), lower_median(followed))

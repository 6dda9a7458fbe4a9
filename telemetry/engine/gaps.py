"""How long after an end the next beginning of the same came, for millions of both."""

from collections.abc import Iterator

import polars as pl

from telemetry.engine.tallies import Tally


def next_gaps(begun: Tally, ended: Tally) -> Iterator[pl.DataFrame]:
    """Yield the rows of `ended` (`same`, `end_s`, others) with `gap_s`, the seconds to the next of `begun` (`same`,
    `submit_s`); null where there is none. Both tallies are split by `same`.

    Later by a second at least: a job that ends in the second of its own submission does not follow itself.
    """
    gap = pl.col("submit_s").cast(pl.Int64) - pl.col("end_s").cast(pl.Int64)
    for begins, ends in zip(begun.groups(), ended.groups(), strict=True):  # each by the same bits of `same`
        after = ends.sort("end_s").join_asof(
            begins.sort("submit_s"), left_on="end_s", right_on="submit_s", by="same", strategy="forward",
            allow_exact_matches=False, check_sortedness=False,
        )  # fmt: skip
        yield after.with_columns(gap.alias("gap_s")).drop("submit_s")


def lower_median(gaps: pl.DataFrame) -> float | None:
    """Return the lower median of gaps (`gap_s`, none of them null) that come with their counts (`jobs`)."""
    if gaps.is_empty():
        return None
    ordered = gaps.sort("gap_s")
    half = (int(ordered["jobs"].sum()) + 1) // 2
    return float(ordered.filter(pl.col("jobs").cum_sum() >= half)["gap_s"][0])


def instant(name: str) -> pl.Expr:
    """Return a column of epoch seconds in 32 bits, which last until 2106."""
    return pl.col(name).cast(pl.UInt32)

"""How jobs ended and how long they waited, in columns; each definition is that of the rollups."""

from typing import Final

import polars as pl

from telemetry.engine.slurm.values import FAILED_STATES
from telemetry.engine.usage import RUNTIME_EDGES_S

_OUTCOMES: Final = {"CANCELLED": "cancelled", "TIMEOUT": "timeout", "COMPLETED": "completed"} | dict.fromkeys(
    FAILED_STATES, "failed"
)


def with_outcome(jobs: pl.DataFrame) -> pl.DataFrame:
    """Add how each job ended: cancelled, timeout, completed, failed, or other; of one that has not, "live"."""
    known = pl.col("state").replace_strict(_OUTCOMES, default="other", return_dtype=pl.String)
    return jobs.with_columns(pl.when(pl.col("end_s").is_null()).then(pl.lit("live")).otherwise(known).alias("outcome"))


def wait() -> pl.Expr:
    """Return the seconds from submit to start."""
    return (pl.col("start_s") - pl.col("submit_s")).clip(lower_bound=0)


def bucket(value: pl.Expr) -> pl.Expr:
    """Return the bucket of a run or wait in seconds: 0 for 0 s, i for (edge[i-1], edge[i]], the last for more."""
    edges = pl.lit(pl.Series(RUNTIME_EDGES_S, dtype=pl.Int64))
    return edges.search_sorted(value, side="left").cast(pl.Int64).alias("bucket")

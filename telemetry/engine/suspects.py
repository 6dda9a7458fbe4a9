"""Which of many jobs may hold a secret: asked of columns, before the full rules look at single records."""

import re

import polars as pl

from security.engine.redact import EXACT_SIGNS, SIGNS, may_hold_secret
from telemetry.engine.redaction import FREE_FIELDS
from telemetry.engine.slurm.bulk_columns import Columns

_EXACT = "|".join(map(re.escape, EXACT_SIGNS))
_FREE = [name for name in FREE_FIELDS if name != "comment"]  # that one stands in the tails


def find_suspects(jobs: pl.DataFrame, columns: Columns) -> pl.Series:
    """Say of each row of `columns.jobs` whether `redact_record` must look at it; False is certain."""
    texts = jobs.select(pl.concat_str(_FREE, separator="\n").alias("text"))["text"]
    signs = texts.str.contains_any(list(SIGNS), ascii_case_insensitive=True) | texts.str.contains(_EXACT)
    # They are for ASCII: a letter like the Kelvin sign is a "k" in lower case.
    signs |= texts.str.len_bytes() != texts.str.len_chars()
    told = [
        at for at, text in zip(signs.arg_true().to_list(), texts.filter(signs).to_list(), strict=True)
        if may_hold_secret(text)
    ]  # fmt: skip
    others = ("\n".join((tail.comment, *tail.extra.values())) for tail in columns.tails)
    tails = [at for at, text in enumerate(others) if may_hold_secret(text)]
    suspect = pl.int_range(len(jobs), dtype=pl.Int64).is_in(told) | pl.col("tail").is_in(tails)
    return jobs.select(suspect.alias("suspect"))["suspect"]

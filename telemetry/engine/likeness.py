"""Which jobs are alike across users (Table II of the paper): of each kind of key, how many jobs several users share."""

from typing import Final, NamedTuple

import polars as pl

from telemetry.engine.similarity_columns import KINDS
from telemetry.engine.tallies import MOST, Tally

_PENDING_ROWS: Final = 500_000


class Alike(NamedTuple):
    """One row of the table: jobs that share their key with a job of another user, the keys, the most users of one,
    and all the users who share any.

    `told` are the jobs that have such a key at all.
    """

    kind: str
    jobs: int
    told: int
    keys: int
    most_users: int
    users: int


class Likeness:
    """Keep, for each kind, how often which user had which key: 16 bytes for each pair of those."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._pairs = {
            kind: Tally(("key", "user"), {"jobs": "sum"}, split="key", pending_rows=_PENDING_ROWS) for kind in KINDS
        }

    def add(self, jobs: pl.DataFrame, keys: pl.DataFrame) -> None:
        """Count the keys of some jobs, which `similarity_columns.key_columns` made."""
        keyed = keys.with_columns(self._users(jobs["user"]), jobs["array_tasks"])
        for kind, pairs in self._pairs.items():
            told = keyed.filter(pl.col(kind) != 0)
            grouped = told.group_by(pl.col(kind).alias("key"), "user").agg(pl.col("array_tasks").sum().alias("jobs"))
            pairs.add(grouped.with_columns(pl.col("jobs").clip(upper_bound=MOST).cast(pl.UInt32)))

    def table(self) -> list[Alike]:
        """Return a row a kind, and forget the keys: kind by kind, for each takes a hundred megabytes."""
        return [_alike(kind, self._pairs.pop(kind)) for kind in KINDS]

    def _users(self, users: pl.Series) -> pl.Series:
        distinct = users.unique().to_list()
        codes = [self._codes.setdefault(user, len(self._codes)) for user in distinct]
        # Of no users at all the type would be theirs.
        return users.replace_strict(distinct, codes, return_dtype=pl.UInt32).cast(pl.UInt32).alias("user")


def _alike(kind: str, pairs: Tally) -> Alike:
    jobs = told = keys = most = 0
    sharing: set[int] = set()
    for part in pairs.groups():
        told += int(part["jobs"].cast(pl.Int64).sum())
        of_several = part.group_by("key").agg(pl.col("jobs").cast(pl.Int64).sum(), pl.len().alias("users"))
        of_several = of_several.filter(pl.col("users") > 1)
        sharing.update(part.join(of_several, on="key", how="semi")["user"].unique())
        jobs += int(of_several["jobs"].sum())
        keys += len(of_several)
        most = max([most, *of_several["users"].top_k(1).to_list()])
    return Alike(kind, jobs, told, keys, most, len(sharing))

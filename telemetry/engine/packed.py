"""Small tables of numbers kept in one text of a row: `0:17 3:2`, cells by ":", rows by " ".

A runtime histogram of a user's day has a few of some forty buckets, its hours a few of 24: as rows of their own they
are more than the rows they belong to.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def unpack(text: str) -> Iterator[list[int]]:
    """Yield the rows of a packed table."""
    return ([int(cell) for cell in row.split(":")] for row in text.split())


def sum_packed(texts: Iterable[str]) -> dict[int, int]:
    """Add up packed tables of two columns by the first."""
    found: dict[int, int] = {}
    for text in texts:
        for key, number in unpack(text):
            found[key] = found.get(key, 0) + number
    return found


def pack_frame(rows: "pl.DataFrame", key: Sequence[str], cells: Sequence[str], name: str) -> "pl.DataFrame":
    """Pack some columns into a text for each key: `key` and `name`. The order of rows is kept."""
    import polars as pl

    row = pl.concat_str(cells, separator=":").alias(name)
    # Lists of rows are joined at once; a join in each group takes several times as long.
    listed = rows.select(*key, row).group_by(key, maintain_order=True).agg(name)
    return listed.with_columns(pl.col(name).list.join(" "))


def unpack_frame(rows: "pl.DataFrame", name: str, cells: Sequence[str]) -> "pl.DataFrame":
    """Undo `pack_frame`: the other columns, repeated, and `cells`; rows that have nothing are left out."""
    import polars as pl

    found = rows.filter(pl.col(name) != "").with_columns(pl.col(name).str.split(" ")).explode(name)
    parts = pl.col(name).str.split_exact(":", len(cells) - 1).struct.rename_fields(list(cells))
    return found.with_columns(parts).unnest(name).with_columns(pl.col(list(cells)).cast(pl.Int64))

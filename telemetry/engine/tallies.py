"""Sums by group that grow block by block and stay small: grouped again whenever enough came."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import polars as pl

How: TypeAlias = Literal["sum", "min", "max"]
MOST: Final = 2**32 - 1  # of jobs, in the columns of 32 bits that large tallies hold
PARTS: Final = 16
_PENDING_ROWS: Final = 100_000


class Tally:
    """Sums of some columns by some keys. The result depends on the rows alone, not on how they came in blocks.

    `split` names a key of 64 evenly spread bits: groups are then made of one part of its values at a time, for to group
    seven million rows at once takes several times their own memory.
    """

    def __init__(
        self, keys: Sequence[str], columns: Mapping[str, How], *, split: str = "", pending_rows: int = _PENDING_ROWS
    ) -> None:
        self._keys, self._split, self._pending_rows = list(keys), split, pending_rows
        self._merged = [getattr(pl.col(name), how)() for name, how in columns.items()]
        self._frames: list[pl.DataFrame] = []
        self._rows = self._settled = 0

    def add(self, rows: pl.DataFrame) -> None:
        """Take rows of the keys and columns; grouping them before saves memory."""
        self._frames.append(rows)
        self._rows += len(rows)
        # In proportion to what is there, so that all the grouping together costs but a few times the last one.
        if self._rows > max(self._pending_rows, self._settled // 2):
            self._frames = list(self.groups())
            self._settled, self._rows = sum(map(len, self._frames)), 0

    def table(self) -> pl.DataFrame:
        """Return a row a group, in the order of the keys. Errors: `ValueError` where nothing was ever added."""
        return pl.concat(self.groups()).sort(self._keys)

    def cut(self, taken: pl.Expr) -> pl.DataFrame:
        """Return a row a group, of those groups alone for whose keys `taken` holds, and forget them."""
        groups = pl.concat(self.groups())
        self._frames = [groups.filter(~taken)]
        self._rows, self._settled = 0, len(self._frames[0])
        return groups.filter(taken)

    def groups(self) -> Iterator[pl.DataFrame]:
        """Yield a row a group in any order: `PARTS` frames by `split`, or one without it."""
        for part in range(PARTS if self._split else 1):
            frames = self._frames
            if self._split:
                frames = [frame.filter(pl.col(self._split) % PARTS == part) for frame in frames]
            yield pl.concat(frames).group_by(self._keys).agg(self._merged)

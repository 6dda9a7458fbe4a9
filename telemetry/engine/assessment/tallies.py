"""Sums by group that grow block by block and stay small: grouped again whenever enough came."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import polars as pl

How: TypeAlias = Literal["sum", "min", "max"]
_PENDING_ROWS: Final = 100_000


class Tally:
    """Sums of some columns by some keys. The result depends on the rows alone, not on how they came in blocks."""

    def __init__(self, keys: Sequence[str], columns: Mapping[str, How], *, pending_rows: int = _PENDING_ROWS) -> None:
        self._keys, self._pending_rows = list(keys), pending_rows
        self._merged = [getattr(pl.col(name), how)() for name, how in columns.items()]
        self._parts: list[pl.DataFrame] = []
        self._rows = self._settled = 0

    def add(self, part: pl.DataFrame) -> None:
        """Take rows of the keys and columns; grouping them before saves memory."""
        self._parts.append(part)
        self._rows += len(part)
        # In proportion to what is there, so that all the grouping together costs but a few times the last one.
        if self._rows > max(self._pending_rows, self._settled // 2):
            self._settle()

    def table(self) -> pl.DataFrame:
        """Return a row a group, in the order of the keys. Errors: `ValueError` where nothing was ever added."""
        self._settle()
        return self._parts[0].sort(self._keys)

    def unsorted(self) -> pl.DataFrame:
        """Return a row a group in any order, and forget all."""
        self._settle()
        found, self._parts = self._parts[0], []
        return found

    def _settle(self) -> None:
        whole = pl.concat(self._parts)
        self._parts = []
        self._parts.append(whole.group_by(self._keys).agg(self._merged))
        self._settled, self._rows = len(self._parts[0]), 0

"""Loops that ask the scheduler the same again and again (paper §IV-A: `while ! squeue -j $ID`).

A loop is the same query from the same process, no further apart than the site wants queries to be. What is asked is
known by a digest with a key that never leaves the node, and is forgotten with the loop.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

from telemetry.engine.collector.facts import Key

FEWEST: Final = 3  # queries in a row that make a loop
_MOST_OPEN: Final = 10_000
_GAPS_KEPT: Final = 512


class PollingLoop(NamedTuple):
    """A loop under a session's root: when it began and was last seen, its queries, the median seconds between them."""

    root: Key
    first_s: float
    last_s: float
    queries: int
    period_s: float


@dataclass(slots=True)
class _Open:
    root: Key
    first_s: float
    last_s: float
    queries: int
    gaps: list[float]


class Polling:
    """Find loops among queries that come in the order of their times.

    `apart_s` is what the site asks for between two queries; `key` makes digests of this node's own.
    """

    def __init__(self, *, apart_s: float, key: bytes) -> None:
        self._apart_s, self._key = apart_s, key
        self._open: dict[tuple[Key, bytes], _Open] = {}

    def query(self, parent: Key, argv: Sequence[str], root: Key, at_s: float) -> None:
        """Take a query that a process of a session started."""
        asked = hashlib.blake2b("\0".join(argv).encode(errors="replace"), key=self._key, digest_size=16).digest()
        place = parent, asked
        known = self._open.get(place)
        if known is None:
            if len(self._open) < _MOST_OPEN:
                self._open[place] = _Open(root, at_s, at_s, 1, [])
            return
        if len(known.gaps) < _GAPS_KEPT:
            known.gaps.append(at_s - known.last_s)
        known.last_s = at_s
        known.queries += 1

    def settle(self, now_s: float) -> list[PollingLoop]:
        """Return the loops that came to an end, and forget what was none: call it some times a minute.

        The queries of one place that are further apart are no loop, but each may begin one.
        """
        over = [place for place, each in self._open.items() if now_s - each.last_s > self._apart_s]
        ended = [self._open.pop(place) for place in over]
        return [
            PollingLoop(each.root, each.first_s, each.last_s, each.queries, median(each.gaps))
            for each in ended
            if each.queries >= FEWEST
        ]

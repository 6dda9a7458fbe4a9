"""The arithmetic of usage in plain Python, which what is computed in columns and in SQL is held to.

All times are UTC epoch seconds (integers), all spans half-open [start, end). Usage of a job is its elapsed time times
what it held; `elapsed_s` and `end_s - start_s` differ when a job was suspended, and then the elapsed time is spread
evenly over the span, so that the parts always sum to the elapsed time.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from telemetry.engine.usage import DAY_S, HOUR_S, RUNTIME_BUCKETS, RUNTIME_EDGES_S


class Piece(NamedTuple):
    """The part of a span inside one period; `period_s` is the period's start."""

    period_s: int
    seconds: int


def split_by_day(start_s: int, end_s: int) -> Iterator[Piece]:
    """Cut [start, end) at UTC midnights; yields nothing for an empty span, no piece of 0 s."""
    return _split(start_s, end_s, DAY_S)


def split_by_hour(start_s: int, end_s: int) -> Iterator[Piece]:
    """Cut [start, end) at full UTC hours; yields nothing for an empty span, no piece of 0 s."""
    return _split(start_s, end_s, HOUR_S)


def _split(start_s: int, end_s: int, period_s: int) -> Iterator[Piece]:
    while start_s < end_s:
        period = start_s - start_s % period_s
        behind = min(period + period_s, end_s)
        yield Piece(period, behind - start_s)
        start_s = behind


def prorate(elapsed_s: int, pieces: Sequence[Piece]) -> list[Piece]:
    """Spread elapsed seconds over the pieces of a span in proportion; whole seconds that sum to `elapsed_s`.

    The same pieces come back when the job was never suspended. Rounds the running total, so that no second is
    lost or made. Without pieces there is nowhere to put them: returns an empty list.
    """
    span = sum(piece.seconds for piece in pieces)
    if span == elapsed_s or not span:
        return list(pieces)
    spread, passed, given = [], 0, 0
    for piece in pieces:
        passed += piece.seconds
        due = elapsed_s * passed // span
        spread.append(Piece(piece.period_s, due - given))
        given = due
    return spread


def histogram_bucket(elapsed_s: int) -> int:
    """Find the runtime bucket of a job: 0 for 0 s, i for (edge[i-1], edge[i]], the last for longer ones."""
    return RUNTIME_BUCKETS - 1 if elapsed_s > RUNTIME_EDGES_S[-1] else bisect_right(RUNTIME_EDGES_S, elapsed_s - 1)

"""The arithmetic of usage: time cut at UTC days and hours, runtimes in buckets, medians, expansion factor.

All times are UTC epoch seconds (integers), all spans half-open [start, end). Usage of a job is its elapsed
time times what it held; `elapsed_s` and `end_s - start_s` differ when a job was suspended, and then the
elapsed time is spread evenly over the span, so that the parts always sum to the elapsed time.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

DAY_S = 86_400
HOUR_S = 3_600

# Upper bounds (inclusive) of the runtime buckets; one more bucket holds what is longer. One minute and five
# minutes are the bounds that the published measurement of agent load reports, so they must be edges; the
# steps around its medians (193 s and 278 s) are narrow, so that an interpolated median is off by little.
RUNTIME_EDGES_S = (
    *(0, 5, 10, 20, 30, 45, 60, 90, 120, 150, 180, 210, 240, 270, 300, 420, 600, 900, 1200, 1800, 2700),
    *(3600, 5400, 7200, 10_800, 14_400, 21_600, 28_800, 43_200, 64_800, 86_400, 129_600, 172_800, 259_200),
    *(345_600, 432_000, 604_800, 864_000, 1_209_600, 1_814_400, 2_592_000, 5_184_000),
)
RUNTIME_BUCKETS = len(RUNTIME_EDGES_S) + 1


class Piece(NamedTuple):
    """The part of a span inside one period; `period_s` is the period's start."""

    period_s: int
    seconds: int


class Load(NamedTuple):
    """What one job weighs in an expansion factor: seconds of run and wait, and nodes."""

    wall_s: int
    wait_s: int
    nodes: int


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


def share_within(counts: Sequence[int], limit_s: int) -> float | None:
    """Share of jobs that ran at most `limit_s`, which must be an edge; None without jobs.

    Raises ValueError when `limit_s` is no edge: the histogram cannot tell.
    """
    if limit_s not in RUNTIME_EDGES_S:
        raise ValueError(f"{limit_s} s is not an edge of the runtime histogram")
    total = sum(counts)
    return sum(counts[: RUNTIME_EDGES_S.index(limit_s) + 1]) / total if total else None


def histogram_median(counts: Sequence[int]) -> float | None:
    """Estimate the median runtime in seconds from bucket counts, by linear interpolation inside its bucket.

    None without jobs. In the open last bucket the answer is its lower edge: a lower bound. The error is at
    most the width of the bucket.
    """
    half, below = sum(counts) / 2, 0
    if not half:
        return None
    for bucket, count in enumerate(counts):
        if below + count >= half and count:
            low = RUNTIME_EDGES_S[bucket - 1] if bucket else 0
            high = RUNTIME_EDGES_S[bucket] if bucket < len(RUNTIME_EDGES_S) else low
            return low + (high - low) * (half - below) / count
        below += count
    return None


def expansion_factor(loads: Iterable[Load]) -> float | None:
    """Sum of (wall + wait) x nodes over sum of wall x nodes, for jobs with wall > 0; None without any.

    Source: Open XDMoD's "User Expansion Factor", weighted by nodes.
    """
    spent = run = 0
    for load in loads:
        if load.wall_s > 0:
            spent += (load.wall_s + load.wait_s) * load.nodes
            run += load.wall_s * load.nodes
    return spent / run if run else None

"""Which declared session and which one that a collector saw are the same.

Both are of one login name, host, kind and harness. A harness that is being started declares its session some seconds
after its process began; where sessions run side by side, those whose starts are nearest belong together, one to one.
No other pair of theirs would be nearer for both: there is one such pairing, whatever order they become known in.
"""

from typing import Final, NamedTuple, TypeAlias

BEFORE_S: Final = 60  # a harness may take its start from another clock
AFTER_S: Final = 600  # it may wait for its person before it is ready
_OVER_S: Final = 60  # of one that is over: it may have ended, by what was seen of it, a little too early

Rank: TypeAlias = tuple[int, int, int, str]


class Seen(NamedTuple):
    """A session that a collector saw: its root process, and its start and end (UTC epoch seconds)."""

    process: str
    start_s: int
    end_s: int | None = None


def rank(declared_s: int, seen: Seen) -> Rank | None:
    """Return how near a start that was declared is to a session that was seen, the smaller the nearer.

    None where they are not the same. No two pairs of a login name, host, kind and harness have the same rank.
    """
    after_s = declared_s - seen.start_s
    if not -BEFORE_S <= after_s <= AFTER_S:
        return None
    if seen.end_s is not None and declared_s > seen.end_s + _OVER_S:
        return None
    return abs(after_s), declared_s, seen.start_s, seen.process

"""Catching up from a cursor, without gap or repeat against the tail.

The listener is in the index first and stands at a known position; what lies between its cursor and that position is
read by a scoped query, what comes later waits in its queue.
"""

from dataclasses import dataclass, replace

from portal.core import live
from portal.realtime.listeners import Listener
from portal.realtime.stream import Event
from portal.realtime.threads import in_database

PAGE = 200


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a listener stands: served up to `seq`; by query to `upto`, by the tail from there."""

    seq: int
    upto: int
    resync: bool = False


async def stand_at(listener: Listener, after: int | None) -> Standing:
    """Place a listener that just joined the tail at its client's cursor.

    A cursor older than what is kept, or ahead of all there is (another database), must resync.
    """
    position = listener.cursor
    if after is None:
        return Standing(position, position)
    oldest, newest = await in_database(_bounds)
    if not oldest - 1 <= after <= max(newest, position):
        return Standing(position, position, resync=True)
    if after > position:  # heard from a process whose tail is ahead of ours
        listener.skip_to(after)
    return Standing(after, max(after, position))


async def read_missed(listener: Listener, standing: Standing) -> tuple[list[Event], Standing]:
    """Read the next page of what the listener's topics brought up to the tail's position.

    Returns the page and the standing behind it; nothing is left once `seq` is `upto`.
    """
    page = await in_database(_read_page, standing.seq, sorted(listener.topics))
    past = [event for event in page if event.seq <= standing.upto]
    seq = past[-1].seq if len(past) == PAGE else standing.upto
    return past, replace(standing, seq=seq)


def _read_page(cursor: int, topics: list[str]) -> list[Event]:
    return [Event.of(row) for row in live.after(cursor, topics=topics, limit=PAGE)]


def _bounds() -> tuple[int, int]:
    return live.oldest_kept_seq(), live.newest_seq()

"""Catching up from a cursor, without gap or repeat against the tail.

The listener is in the index first and stands at a known position; what lies between its cursor and that position is
read by a scoped query, what comes later waits in its queue.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from portal.core import live
from portal.realtime.listeners import Listener
from portal.realtime.stream import Event
from portal.realtime.threads import in_database

PAGE = 200


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a listener begins: past `seq`, by query up to `upto`, by the tail from there."""

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


async def missed(listener: Listener, standing: Standing) -> AsyncIterator[list[Event]]:
    """Yield page by page what the listener's topics brought between its cursor and the tail's position."""
    cursor = standing.seq
    while cursor < standing.upto:
        topics = sorted(listener.topics)
        page = await in_database(read_page, cursor, topics)
        past = [event for event in page if event.seq <= standing.upto]
        if past:
            yield past
        if len(past) < PAGE:
            return
        cursor = past[-1].seq


def read_page(cursor: int, topics: list[str]) -> list[Event]:
    """Return the next page of events on `topics`. Touches the database."""
    return [Event.of(row) for row in live.after(cursor, topics=topics, limit=PAGE)]


def _bounds() -> tuple[int, int]:
    return live.oldest_kept_seq(), live.newest_seq()

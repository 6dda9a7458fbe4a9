"""Long-poll: the same events for those who cannot keep a socket. A waiting request asks the database nothing."""

import asyncio
from typing import Any, TypedDict

from asgiref.sync import sync_to_async

from portal.core.connections import free_connections
from portal.realtime import catchup, tail
from portal.realtime.catchup import PAGE, Standing
from portal.realtime.listeners import Listener
from portal.realtime.stream import Event
from portal.realtime.viewers import Viewer

MAX_WAIT_S = 30.0


class Answer(TypedDict):
    """Events past the cursor, the cursor to ask with next, and whether some were lost to this client."""

    events: list[dict[str, Any]]
    next: int
    resync: bool


async def poll(viewer: Viewer, topics: list[str], *, after: int | None, wait_s: float) -> Answer:
    """Answer at once where events lie past `after`, else wait up to `wait_s` seconds for the first.

    Without `after` only the present position is told. Errors: `TooMany` listeners, those of a right lost while waiting.
    """
    await sync_to_async(free_connections)()
    current = tail.of_this_process()
    async with current.listening(viewer, topics) as listener:
        standing = await catchup.stand_at(listener, after)
        if after is None or standing.resync:
            return Answer(events=[], next=standing.seq, resync=standing.resync)
        if standing.seq < standing.upto:
            page, standing = await catchup.read_missed(listener, standing)
            if page:
                return _answer(page, standing.seq, listener)
        events = await _wait(listener, wait_s)
        return _answer(events, events[-1].seq if events else _quiet_until(listener, standing, current), listener)


def _answer(events: list[Event], upto: int, listener: Listener) -> Answer:
    return Answer(events=[event.as_dict(listener.topics) for event in events], next=upto, resync=False)


async def _wait(listener: Listener, wait_s: float) -> list[Event]:
    try:
        await asyncio.wait_for(listener.woken.wait(), wait_s)
    except TimeoutError:
        return []
    listener.require_right()
    events: list[Event] = []
    while len(events) < PAGE and (event := listener.next()) is not None:
        events.append(event)
    return events


def _quiet_until(listener: Listener, standing: Standing, current: tail.Tail) -> int:
    """Return how far a listener that heard nothing may move its cursor."""
    if listener.waiting:  # came between the end of the wait and now
        return standing.upto
    return max(standing.upto, current.position)

"""What one connection is told, message by message: the same over a WebSocket and over an event stream.

hello     {seq, topics}                    where the connection stands and what it hears
event     {seq, name, at, topics, payload} one piece of news; `seq` is the cursor to come back with
caught_up {seq}                            after the events missed since `after`; live from here
resync    {seq}                            events were lost to this client: load the state again, go on from `seq`
closed    {code, reason, remedy}           why the connection closes: 4000 + the HTTP status it stands for
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from portal.realtime import catchup
from portal.realtime.listeners import TURN, Listener
from portal.realtime.tail import Tail

CLOSE_BASE = 4000
SERVICE_RESTART, TRY_AGAIN_LATER = 1012, 1013  # IANA, "WebSocket Close Code Number Registry"
BEAT = "beat"  # nothing happened for a while: a stream says so, a socket has pings of its own


class Message(NamedTuple):
    """One message: its kind, the cursor behind it (None: it has none), and its JSON as it is sent."""

    kind: str
    seq: int | None
    text: str


def message(kind: str, seq: int | None = None, **facts: Any) -> Message:
    """Write a message that is no event."""
    told = facts if seq is None else {"seq": seq, **facts}
    return Message(kind, seq, json.dumps({"type": kind, **told}))


async def catch_up(listener: Listener, after: int | None) -> AsyncIterator[Message]:
    """Say hello, then what was missed since `after`. Errors: those of a right that is gone."""
    standing = await catchup.stand_at(listener, after)
    yield message("hello", standing.seq, topics=sorted(listener.topics))
    if standing.resync:
        yield message("resync", standing.seq)
    while standing.seq < standing.upto:
        page, standing = await catchup.read_missed(listener, standing)
        for number, event in enumerate(page, start=1):
            if number % TURN == 0:
                await asyncio.sleep(0)
            listener.require_right()
            if event.seen_by(listener.topics):
                yield Message("event", event.seq, event.text(listener.topics))
    if after is not None:
        yield message("caught_up", standing.upto)


async def follow(tail: Tail, listener: Listener, *, beat_s: float | None = None) -> AsyncIterator[Message]:
    """Say what happens from now on, without end; a `BEAT` where nothing does for `beat_s` seconds.

    Errors: those of a right that is gone.
    """
    while True:
        if not await _is_woken(listener, beat_s):
            yield Message(BEAT, None, "")
            continue
        if listener.overflowed:
            listener.skip_to(tail.position)
            yield message("resync", listener.cursor)
        event = listener.next()
        listener.require_right()
        if event is not None and event.seen_by(listener.topics):
            yield Message("event", event.seq, event.text(listener.topics))


async def _is_woken(listener: Listener, beat_s: float | None) -> bool:
    if beat_s is None or listener.woken.is_set():  # a wait with an end makes a task
        await listener.wait()
        return True
    try:
        await asyncio.wait_for(listener.wait(), beat_s)
    except TimeoutError:
        return False
    return True

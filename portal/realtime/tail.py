"""The tail of the live events: one a process, whatever the number of listeners.

It runs while somebody listens. Each step numbers what was committed (where this process holds the sequencer's lease)
and reads each new row once. While nobody listens anywhere, a beat task numbers (`portal.realtime.tasks`).
"""

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from weakref import WeakKeyDictionary

import structlog
from django.db import close_old_connections, connections

from portal.core import live
from portal.realtime.listeners import Listener, Listeners
from portal.realtime.nudges import hear_nudges
from portal.realtime.rights import Rights
from portal.realtime.sequencer import Sequencer
from portal.realtime.stream import Event
from portal.realtime.threads import in_database
from portal.realtime.viewers import Viewer
from principals import events as principal_events

log = structlog.get_logger(__name__)

POLL_S = 0.1
COALESCE_S = 0.01  # a burst of nudges makes one step
MAX_BACK_OFF_S = 10.0
PAGE = 500
# Rights that are gone close a socket within 5 s: so every 3.
RECHECK_S = 3.0
# Long-polls come one after the other; the tail outlives the gap between two.
LINGER_S = 10.0
# After these nobody waits for the next round.
CHANGES_OF_RIGHTS = frozenset(
    {
        live.PERMISSIONS_CHANGED,
        principal_events.AGENT_CHANGED,
        principal_events.HOLD_PLACED,
        principal_events.TOKEN_REVOKED,
    }
)
START_TIMEOUT_S = 10.0


class Tail:
    """Reads live events for the listeners of one event loop. `position` is the last seq handed on."""

    def __init__(self) -> None:
        self.listeners = Listeners()
        self.position = 0
        self.steps = 0
        self.rows_read = 0
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._rights_changed = asyncio.Event()

    @asynccontextmanager
    async def listening(self, viewer: Viewer, topics: list[str]) -> AsyncIterator[Listener]:
        """Listen from the present position on. Errors: `TooMany`; `TimeoutError` where the database does not answer."""
        with self.listeners.listening(Listener(viewer, topics)) as listener:
            if self._task is None or self._task.done():
                self._ready = asyncio.Event()
                # A context of its own: the tail must not live in that of the request that happened to start it.
                self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())
            await asyncio.wait_for(self._ready.wait(), START_TIMEOUT_S)
            listener.skip_to(self.position)
            yield listener

    async def _run(self) -> None:
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="live-tail")
        nudged = asyncio.Event()
        helpers = [asyncio.create_task(hear_nudges(nudged)), asyncio.create_task(self._watch_rights())]
        try:
            await self._follow(thread, nudged)
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            await asyncio.get_running_loop().run_in_executor(thread, connections.close_all)
            thread.shutdown(wait=False)

    async def _follow(self, thread: ThreadPoolExecutor, nudged: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        sequencer = Sequencer()
        failures, wanted_at = 0, time.monotonic()
        while True:
            nudged.clear()
            position = self.position if self._ready.is_set() else None
            try:
                stands_at, events = await loop.run_in_executor(thread, _read, sequencer, position)
            except Exception:
                failures += 1
                log.exception("live_tail_failed", failures=failures)
                await loop.run_in_executor(thread, _drop_connections)
                await asyncio.sleep(min(POLL_S * 2**failures, MAX_BACK_OFF_S))
                continue
            failures = 0
            self._hand_on(stands_at, events)
            if self.listeners:
                wanted_at = time.monotonic()
            elif time.monotonic() - wanted_at > LINGER_S:
                return
            await _pause(nudged, full=len(events) == PAGE)

    def _hand_on(self, position: int, events: list[Event]) -> None:
        self.steps += 1
        self.rows_read += len(events)
        for event in events:
            if event.name in CHANGES_OF_RIGHTS:
                self._rights_changed.set()
            self.listeners.deliver(event)
        self.position = position
        self._ready.set()

    async def _watch_rights(self) -> None:
        rights = Rights()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._rights_changed.wait(), RECHECK_S)
            self._rights_changed.clear()
            try:
                await self._end_those_without_right(rights)
            except Exception:
                log.exception("live_rights_check_failed")

    async def _end_those_without_right(self, rights: Rights) -> None:
        watched: dict[Viewer, set[str]] = {}
        for listener in self.listeners:
            watched.setdefault(listener.viewer, set()).update(listener.topics)
        losses = await in_database(rights.losses, watched)
        for listener in self.listeners:
            loss = losses.get(listener.viewer)
            error = loss.touching(listener.topics) if loss else None
            if error is not None:
                listener.end(error)


def _read(sequencer: Sequencer, position: int | None) -> tuple[int, list[Event]]:
    """Number, then read the next page; without a position number all there is and stand at the newest."""
    close_old_connections()
    if position is None:
        while sequencer.number():
            pass
        return live.newest_seq(), []
    sequencer.number()
    events = [Event.of(row) for row in live.after(position, limit=PAGE)]
    return (events[-1].seq if events else position), events


def _drop_connections() -> None:
    try:
        connections.close_all()
    except Exception:
        log.warning("live_tail_close_failed", exc_info=True)


async def _pause(nudged: asyncio.Event, *, full: bool) -> None:
    if full:
        await asyncio.sleep(0)
        return
    try:
        await asyncio.wait_for(nudged.wait(), POLL_S)
    except TimeoutError:
        return
    await asyncio.sleep(COALESCE_S)


_tails: WeakKeyDictionary[asyncio.AbstractEventLoop, Tail] = WeakKeyDictionary()


def of_this_process() -> Tail:
    """Return the tail of the running event loop; a server process has one loop, so one tail."""
    return _tails.setdefault(asyncio.get_running_loop(), Tail())

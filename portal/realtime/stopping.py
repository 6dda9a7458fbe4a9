"""Hearing that the server is to stop: it waits for streams that have no end of their own, so they end themselves.

Sockets it closes by itself (code 1012). An ASGI server tells an application of its stop by `lifespan` alone, and only
after every response is over; so the signal is heard here too, before the server's own handler.
"""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType
from weakref import WeakKeyDictionary, WeakSet

from portal.core.errors import DomainError
from portal.realtime.listeners import Listener

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_streams: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Listener]] = WeakKeyDictionary()


class ServerStops(DomainError):
    """The process that served a stream is to end."""

    status, title, code = 503, "Restarting", "server_stops"

    def __init__(self) -> None:
        super().__init__("The portal restarts.", remedy="Connect again with the cursor.", retry_after_s=2)


def end_with_server(listener: Listener) -> None:
    """Let a listener of this loop end by `ServerStops` once the process is asked to stop."""
    _streams.setdefault(asyncio.get_running_loop(), WeakSet()).add(listener)
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            _hear(number)


def _hear(number: signal.Signals) -> None:
    served = signal.getsignal(number)
    # A default or ignored signal is nobody's request to a server; what is ours already is heard.
    if not callable(served) or served is signal.default_int_handler or getattr(served, "ends_streams", False):
        return
    handler: Callable[[int, FrameType | None], object] = served

    def both(number: int, frame: FrameType | None) -> None:
        end_streams()
        handler(number, frame)

    both.ends_streams = True  # type: ignore[attr-defined]
    signal.signal(number, both)


def end_streams() -> None:
    """End every stream of this process; safe in a signal's handler."""
    for loop in list(_streams):
        if not loop.is_closed():
            loop.call_soon_threadsafe(_end_those_of, loop)


def _end_those_of(loop: asyncio.AbstractEventLoop) -> None:
    for listener in list(_streams.get(loop, ())):
        listener.end(ServerStops())

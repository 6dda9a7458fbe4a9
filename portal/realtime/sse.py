"""Server-sent events: the messages of `telling` over plain HTTP, for whoever has no WebSocket (WHATWG HTML, 9.2).

Each message is `event: <type>`, `id: <seq>`, `data: <the JSON that a socket sends>`.
"""

import asyncio
from collections.abc import AsyncIterator

import structlog
from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from portal.core.connections import free_connections
from portal.core.errors import DomainError
from portal.realtime import stopping, tail, telling
from portal.realtime.telling import BEAT, CLOSE_BASE, SERVICE_RESTART, TRY_AGAIN_LATER, Message, message
from portal.realtime.viewers import Viewer

log = structlog.get_logger(__name__)

BEAT_S = 15.0  # below the idle limits of proxies, of which 60 s is the usual one
RETRY_MS = 2000
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx holds back what it may buffer


async def respond(viewer: Viewer, topics: list[str], *, after: int | None) -> StreamingHttpResponse:
    """Return the stream of a viewer. Errors, before it begins: `TooMany` listeners, those of a right lost by then."""
    await sync_to_async(free_connections)()
    messages = _messages(viewer, topics, after)
    hello = await anext(messages)
    return StreamingHttpResponse(_lines(hello, messages), content_type="text/event-stream", headers=HEADERS)


async def _messages(viewer: Viewer, topics: list[str], after: int | None) -> AsyncIterator[Message]:
    current = tail.of_this_process()
    async with current.listening(viewer, topics) as listener:
        stopping.end_with_server(listener)
        async for told in telling.catch_up(listener, after):
            yield told
        async for told in telling.follow(current, listener, beat_s=BEAT_S):
            yield told


async def _lines(hello: Message, messages: AsyncIterator[Message]) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MS}\n{_frame(hello)}"
    try:
        async for told in messages:
            yield _frame(told)
    except DomainError as error:
        code = SERVICE_RESTART if isinstance(error, stopping.ServerStops) else CLOSE_BASE + error.status
        yield _closed(code, error.detail, error.remedy)
    except (asyncio.CancelledError, GeneratorExit):  # the client is gone, or the server
        raise
    except Exception:
        log.exception("event_stream_failed")
        yield _closed(TRY_AGAIN_LATER, "Something failed here.", "Connect again in a while.")
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # a generator: its listener leaves at once


def _closed(code: int, reason: str, remedy: str) -> str:
    return _frame(message("closed", code=code, reason=reason, remedy=remedy))


def _frame(told: Message) -> str:
    """Write one message; JSON holds no line break, so it is one line of data."""
    if told.kind == BEAT:
        return ": \n\n"
    cursor = "" if told.seq is None else f"id: {told.seq}\n"
    return f"event: {told.kind}\n{cursor}data: {told.text}\n\n"

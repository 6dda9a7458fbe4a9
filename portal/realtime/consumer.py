"""The one WebSocket consumer: `/ws/events/?topics=a,b&after=N`.

Server → client, one JSON object a message:
  hello     {seq, topics}                    where the socket stands and what it hears
  event     {seq, name, at, topics, payload} one piece of news; `seq` is the cursor to come back with
  caught_up {seq}                            after the events missed since `after`; live from here
  resync    {seq}                            events were lost to this client: load the state again, go on from `seq`
  subscribed, unsubscribed {seq, topics}     the answer to a change of topics; `topics` is all that is heard now
  pong      {seq}
  error     {code, detail, remedy}           a message that could not be followed; the socket stays open
  closed    {code, reason, remedy}           why the socket closes: 4000 + the HTTP status it stands for
Client → server: subscribe {topics}, unsubscribe {topics}, ping.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

import structlog
from channels.generic.websocket import AsyncWebsocketConsumer

from portal.core.errors import DomainError
from portal.realtime import catchup, tail, viewers
from portal.realtime.listeners import Listener
from portal.realtime.messages import read_cursor, read_message
from portal.realtime.stream import Event
from portal.realtime.threads import in_database

log = structlog.get_logger(__name__)

CLOSE_BASE = 4000
TRY_AGAIN_LATER = 1013  # RFC 6455 registry
MAX_REASON_BYTES = 123  # RFC 6455 §5.5


class EventsConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Sends its viewer's events. All comes from the process's tail; no socket asks the database for itself."""

    channel_layer_alias = None  # no channel of its own: the tail alone hears nudges

    async def connect(self) -> None:
        # Accepted first: a close code reaches the client only after the handshake.
        await self.accept()
        self._tail = tail.of_this_process()
        self._listener: Listener | None = None
        self._opened = asyncio.Event()
        self._closed = False
        self._serving = asyncio.create_task(self._serve())

    async def disconnect(self, code: int) -> None:
        self._closed = True
        self._serving.cancel()
        with suppress(asyncio.CancelledError):
            await self._serving

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self._opened.wait()
        if self._listener is None:
            return
        try:
            message = read_message(text_data)
            await self._follow(message.type, message.topics, self._listener)
        except DomainError as error:
            await self._tell("error", code=error.code, detail=error.detail, remedy=error.remedy)

    async def _serve(self) -> None:
        try:
            await self._stream()
        except DomainError as error:
            await self._refuse(CLOSE_BASE + error.status, error.detail, error.remedy)
        except TimeoutError:
            await self._refuse(TRY_AGAIN_LATER, "The database does not answer.", "Connect again in a while.")
        except OSError:  # the client is gone; its disconnect message follows
            self._closed = True
        except Exception:
            if not self._closed:
                log.exception("live_socket_failed")
                await self._refuse(TRY_AGAIN_LATER, "Something failed here.", "Connect again in a while.")
        finally:
            self._opened.set()

    async def _stream(self) -> None:
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        asked = viewers.split_topics(query.get("topics", [""])[-1])
        after = read_cursor(query.get("after", [""])[-1])
        viewer, topics = await in_database(viewers.admit, self.scope, asked)
        async with self._tail.listening(viewer, topics) as listener:
            standing = await catchup.stand_at(listener, after)
            await self._tell("hello", seq=standing.seq, topics=sorted(listener.topics))
            if standing.resync:
                await self._tell("resync", seq=standing.seq)
            while standing.seq < standing.upto:
                page, standing = await catchup.read_missed(listener, standing)
                for event in page:
                    await self._send_event(event, listener)
            if after is not None:
                await self._tell("caught_up", seq=standing.upto)
            self._listener = listener
            self._opened.set()
            await self._pump(listener)

    async def _pump(self, listener: Listener) -> None:
        while True:
            await listener.wait()
            if listener.overflowed:
                listener.skip_to(self._tail.position)
                await self._tell("resync", seq=listener.cursor)
            event = listener.next()
            listener.require_right()
            if event is not None:
                await self._send_event(event, listener)

    async def _send_event(self, event: Event, listener: Listener) -> None:
        listener.require_right()
        if event.seen_by(listener.topics):
            await self.send(event.text(listener.topics))

    async def _follow(self, kind: str, topics: list[str], listener: Listener) -> None:
        if kind == "ping":
            await self._tell("pong", seq=listener.cursor)
            return
        if kind == "subscribe":
            viewers.within_limit(sorted(listener.topics.union(topics)))
            await in_database(viewers.require_topics, listener.viewer, topics)
            self._tail.listeners.add_topics(listener, topics)
        else:
            self._tail.listeners.remove_topics(listener, topics)
        await self._tell(f"{kind}d", seq=self._tail.position, topics=sorted(listener.topics))

    async def _tell(self, kind: str, **facts: Any) -> None:
        if not self._closed:
            await self.send(json.dumps({"type": kind, **facts}))

    async def _refuse(self, code: int, reason: str, remedy: str) -> None:
        if self._closed:
            return
        await self._tell("closed", code=code, reason=reason, remedy=remedy)
        self._closed = True
        short = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        await self.close(code=code, reason=short)

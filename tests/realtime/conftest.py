"""Sockets for tests: a topic kind of labs, a way to announce, and listeners that speak the protocol."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from asgiref.sync import SyncToAsync, sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.db import connections, transaction

from portal.core import live, topics
from portal.realtime.routing import websocket
from principals.actors import Actor
from principals.models import User
from tests.conftest import sign_in

PATIENCE_S = 15  # an upper bound for a busy machine; nothing waits that long


def _may_hear_lab(actor: Actor, key: str) -> bool:
    return key.isdigit() and (actor.sees_facility or int(key) in actor.member_lab_ids | actor.granted_lab_ids)


@pytest.fixture(scope="session", autouse=True)
def no_connection_outlives_the_tests(django_db_setup: None) -> Iterator[None]:
    """PostgreSQL drops no database that threads still hold connections to."""
    settings.DATABASES["default"]["CONN_MAX_AGE"] = 0
    yield
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture(autouse=True)
def topic_kinds() -> Iterator[None]:
    """Two kinds of topic: what a lab's people hear, and what those who look everywhere hear."""
    topics.register(
        topics.TopicKind(
            name="test-lab", describe="News of one lab.", authorise=_may_hear_lab,
            default_topics=lambda actor: [f"test-lab:{lab}" for lab in sorted(actor.member_lab_ids)],
        )
    )  # fmt: skip
    topics.register(
        topics.TopicKind(
            name="test-all", describe="All news.", authorise=lambda actor, key: actor.sees_facility,
            default_topics=lambda actor: ["test-all:x"] if actor.sees_facility else [],
        )
    )  # fmt: skip
    yield
    topics.unregister("test-lab")
    topics.unregister("test-all")


def announce(*names: str, topics: tuple[str, ...]) -> None:
    """Tell news in a transaction of its own."""
    with transaction.atomic():
        live.announce(live.News(name=name, topics=topics, payload={"name": name}) for name in names)


tell = sync_to_async(announce)
number = sync_to_async(live.number_committed)


class Socket(ApplicationCommunicator):
    """A client of a WebSocket address, as a server would present it (ASGI's WebSocket messages)."""

    def __init__(self, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        path, _, query = path.partition("?")
        scope = {"type": "websocket", "path": path, "query_string": query.encode(), "headers": headers}
        super().__init__(websocket, scope)

    async def connect(self) -> tuple[bool, int]:
        """Say whether the handshake was accepted, and the close code where it was not."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(PATIENCE_S)
        return answer["type"] == "websocket.accept", int(answer.get("code", 0))

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(PATIENCE_S)

    async def say(self, message: object) -> None:
        await self.send_input({"type": "websocket.receive", "text": json.dumps(message)})

    async def say_raw(self, **frame: object) -> None:
        await self.send_input({"type": "websocket.receive", **frame})

    async def next(self, timeout: float = PATIENCE_S) -> dict[str, Any]:
        output = await self.receive_output(timeout)
        assert output["type"] == "websocket.send", output
        message: dict[str, Any] = json.loads(output["text"])
        return message

    async def next_events(self, count: int) -> list[str]:
        """The names of the next messages, all of which must be events."""
        messages = [await self.next() for _ in range(count)]
        assert {message["type"] for message in messages} <= {"event"}
        return [message["name"] for message in messages]

    async def close_code(self) -> int:
        output = await self.receive_output(PATIENCE_S)
        assert output["type"] == "websocket.close", output
        return int(output["code"])


@dataclass
class Sockets:
    """Opens sockets and closes them at the end of the test."""

    opened: list[Socket] = field(default_factory=list)

    async def open(
        self, query: str = "", *, token: str = "", cookie: str = "", origin: str = "http://localhost"
    ) -> Socket:
        headers = [(b"origin", origin.encode())] if origin else []
        if token:
            headers = [(b"authorization", f"Bearer {token}".encode())]
        if cookie:
            headers.append((b"cookie", f"sessionid={cookie}".encode()))
        socket = Socket(f"/ws/events/?{query}", headers)
        accepted, _ = await socket.connect()
        assert accepted
        self.opened.append(socket)
        return socket

    async def listen(self, query: str = "", **who: str) -> Socket:
        """Open a socket and pass its hello."""
        socket = await self.open(query, **who)
        hello = await socket.next()
        assert hello["type"] == "hello", hello
        return socket


@pytest.fixture
async def sockets() -> AsyncIterator[Sockets]:
    made = Sockets()
    yield made
    for socket in made.opened:
        await socket.disconnect()


@sync_to_async
def cookie_of(user: User) -> str:
    """The session cookie of a browser in which `user` is signed in."""
    return str(sign_in(user).cookies["sessionid"].value)

"""The real thing: uvicorn in a process of its own, sockets and long-polls over loopback."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.support import demo
from tests.support.services import free_port, redis, wait_for_port

ROOT = Path(__file__).resolve().parent.parent.parent
# Runs in the server's database: who is who, and their keys.
SETUP = """
import json
from tests import factories
from tests.conftest import sign_in
staff = factories.make_user("staff", is_research_computing=True)
pi = factories.make_user("pi")
agent = factories.make_agent(factories.make_lab("okafor", pi=pi), pi, "okafor-docking")
print(json.dumps({
    "cookie": sign_in(staff).cookies["sessionid"].value, "token": factories.make_token(agent), "agent": agent.pk,
}))
"""
# Another process than the server: what it tells can arrive by the table alone.
TELL = """
import sys
from django.db import transaction
from portal.core import live
with transaction.atomic():
    live.announce([live.News(name=sys.argv[1], topics=(sys.argv[2],), payload={"n": 1})])
"""


@dataclass
class Server:
    port: int
    process: subprocess.Popen[bytes]
    environment: dict[str, str]
    cookie: str = ""
    token: str = ""
    agent: int = 0

    def run(self, script: str, *arguments: str) -> str:
        code = f"import django; django.setup()\n{script}"
        command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def tell(self, name: str, topic: str) -> None:
        self.run(TELL, name, topic)

    def connect(self, query: str = "", *, token: str = "", cookie: str = "", origin: str = "") -> connect:
        headers = {"Authorization": f"Bearer {token}"} if token else {"Cookie": f"sessionid={cookie}"}
        url = f"ws://127.0.0.1:{self.port}/ws/events/?{query}"
        return connect(url, additional_headers=headers, origin=origin or None)  # type: ignore[arg-type]

    def connect_browser(self, query: str = "") -> connect:
        return self.connect(query, cookie=self.cookie, origin=f"http://127.0.0.1:{self.port}")


@contextmanager
def _running(folder: Path, **settings: str) -> Iterator[Server]:
    """The portal under uvicorn, on a free port, with a database of its own."""
    port = free_port()
    environment = os.environ | {
        "GATEHOUSE_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "portal.settings", "LOG_LEVEL": "WARNING",
    }  # fmt: skip
    environment.pop("DATABASE_URL", None)
    options = ["--port", str(port), "--log-level", "warning", "--lifespan", "off"]
    command = [sys.executable, "-m", "uvicorn", "portal.asgi:application", *options]
    process = subprocess.Popen(command, cwd=ROOT, env=environment | settings)
    made = Server(port, process, environment | settings)
    try:
        wait_for_port(port, process)
        for name, value in json.loads(made.run(SETUP)).items():
            setattr(made, name, value)
        yield made
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The embedded profile."""
    with _running(demo.empty_folder(tmp_path_factory.mktemp("portal") / "var")) as made:
        yield made


@pytest.fixture
def services_server() -> Iterator[Server]:
    """The services profile, with a Redis of its own: sockets stay open or not by the layer, whatever the database."""
    with TemporaryDirectory(prefix="gatehouse-") as name, redis(Path(name)) as redis_url:
        assert redis_url
        data = demo.empty_folder(Path(name) / "var")
        settings = {
            "GATEHOUSE_PROFILE": "services", "DATABASE_URL": f"sqlite:///{data}/gatehouse.sqlite3",
            "REDIS_URL": redis_url, "SECRET_KEY": "test-" * 8, "TOKEN_PEPPERS": "1:" + "pepper" * 8,
        }  # fmt: skip
        with _running(data, **settings) as made:
            yield made


async def _next(socket: ClientConnection, patience_s: float = 5) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await asyncio.wait_for(socket.recv(), patience_s))
    return message


async def test_a_browser_hears_what_another_process_tells_within_2_s(server: Server) -> None:
    topic = "facility:principals"
    async with server.connect_browser(f"topics={topic}") as socket:
        assert (await _next(socket))["topics"] == [topic]
        telling = asyncio.create_task(asyncio.to_thread(server.tell, "agent.changed", topic))
        event = await _next(socket, 30)
        heard_at = time.time()
        await telling
        assert (event["type"], event["name"], event["topics"]) == ("event", "agent.changed", [topic])
        assert heard_at - datetime.fromisoformat(event["at"]).timestamp() < 2


async def test_a_socket_that_is_not_signed_in_learns_why_it_is_closed(server: Server) -> None:
    async with server.connect(cookie="n0such5ess10n", origin=f"http://127.0.0.1:{server.port}") as socket:
        closed = await _next(socket)
        assert (closed["type"], closed["code"]) == ("closed", 4401)
        with pytest.raises(ConnectionClosed) as caught:
            await socket.recv()
        assert caught.value.rcvd is not None
        assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (4401, closed["reason"])


async def test_a_page_of_another_site_gets_no_socket(server: Server) -> None:
    with pytest.raises(Exception, match="403"):
        async with server.connect(cookie=server.cookie, origin="https://evil.example"):
            pass


@pytest.mark.parametrize(
    ("query", "told"), [("x=" + "a" * 60_000, "hello"), ("topics=" + "a" * 60_000, "closed")], ids=["ignored", "topic"]
)
async def test_a_long_handshake_is_answered(server: Server, query: str, told: str) -> None:
    async with asyncio.timeout(10), server.connect_browser(query) as socket:
        assert (await _next(socket))["type"] == told


async def test_a_handshake_of_many_headers_is_answered(server: Server) -> None:
    headers = {"Cookie": f"sessionid={server.cookie}"} | {f"x-{number}": "1" for number in range(200)}
    url, origin = f"ws://127.0.0.1:{server.port}/ws/events/", f"http://127.0.0.1:{server.port}"
    async with asyncio.timeout(10), connect(url, additional_headers=headers, origin=origin) as socket:  # type: ignore[arg-type]
        assert (await _next(socket))["type"] == "hello"


async def test_a_handshake_longer_than_any_request_is_refused(server: Server) -> None:
    # The refusal may be lost where the server closes before it has read all.
    async with asyncio.timeout(10):
        with pytest.raises((InvalidHandshake, OSError)):
            async with server.connect_browser("x=" + "a" * 2_000_000):
                pass


async def test_an_agent_waits_by_long_poll_for_what_another_process_tells(server: Server) -> None:
    topic = f"agent:{server.agent}"
    headers = {"Authorization": f"Bearer {server.token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", headers=headers, timeout=30) as client:
        position = (await client.get("/api/v1/events", params={"topics": topic})).json()["next"]
        waiting = asyncio.create_task(
            client.get("/api/v1/events", params={"topics": topic, "after": position, "wait": 20})
        )
        await asyncio.sleep(0)
        await asyncio.to_thread(server.tell, "agent.noted", topic)
        answer = (await waiting).json()
        assert [event["name"] for event in answer["events"]] == ["agent.noted"]


async def test_many_long_polls_wait_while_pages_are_served_at_once(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    limits = httpx.Limits(max_connections=100)
    base = f"http://127.0.0.1:{server.port}"
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=60, limits=limits) as client:
        position = (await client.get("/api/v1/events")).json()["next"]
        query = {"after": position, "wait": 15}
        polls = [asyncio.create_task(client.get("/api/v1/events", params=query)) for _ in range(49)]
        while _connections_to(server.port) < 49:
            await asyncio.sleep(0.05)
        assert (await client.get("/healthz")).status_code == 200
        assert not any(poll.done() for poll in polls)
        assert {(await poll).status_code for poll in polls} == {200}


def _connections_to(port: int) -> int:
    established, wanted = "01", f":{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(1 for line in lines if line.split()[3] == established and line.split()[1].endswith(wanted))


IDLE_S = [15, pytest.param(600, marks=pytest.mark.soak)]


@pytest.mark.parametrize("idle_s", IDLE_S)
async def test_an_idle_socket_stays_open(server: Server, idle_s: int) -> None:
    """Ten minutes: more than any timeout of a client, a server or a load balancer that was seen to close sockets."""
    await _stays_open(server, idle_s)


@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.parametrize("idle_s", IDLE_S)
async def test_an_idle_socket_stays_open_over_redis(services_server: Server, idle_s: int) -> None:
    """Through the pub/sub layer, whose client closed what was idle for five seconds in one version (redis 8)."""
    await _stays_open(services_server, idle_s)


async def _stays_open(server: Server, idle_s: int) -> None:
    topic = "facility:principals"
    async with server.connect_browser(f"topics={topic}") as socket:
        await _next(socket)
        with pytest.raises(TimeoutError):
            await _next(socket, idle_s)
        await socket.send(json.dumps({"type": "ping"}))
        assert (await _next(socket))["type"] == "pong"
        await asyncio.to_thread(server.tell, "agent.noted", topic)
        assert (await _next(socket))["name"] == "agent.noted"


CROWD = """
import json
from principals.models import Lab, User
from tests import factories
from tests.conftest import sign_in
staff = [factories.make_user(f"staff{n}", is_research_computing=True) for n in range(5)]
lab, pi = Lab.objects.get(name="okafor"), User.objects.get(username="pi")
agents = [factories.make_agent(lab, pi, f"okafor-{n}") for n in range(2)]
print(json.dumps({
    "cookies": [sign_in(user).cookies["sessionid"].value for user in staff],
    "agents": [(f"agent:{agent.pk}", factories.make_token(agent)) for agent in agents],
}))
"""
FLOOD = """
import sys
from django.db import transaction
from portal.core import live
for number in range(int(sys.argv[1])):
    with transaction.atomic():
        live.announce([live.News(name="agent.noted", topics=tuple(sys.argv[2:]), payload={"n": number})])
"""


@pytest.mark.soak
async def test_200_sockets_and_60_long_polls_hear_all_that_is_told(server: Server) -> None:
    """Forty of each of five people, thirty of each of two agents: below what one of them may open."""
    told, topic, crowd = 100, "facility:principals", json.loads(server.run(CROWD))
    base, topics = f"http://127.0.0.1:{server.port}", [topic, *(own for own, _ in crowd["agents"])]
    # The server closes what was idle for five seconds, and httpx would send a request into that.
    limits = httpx.Limits(max_connections=100, keepalive_expiry=1)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=base, timeout=60, limits=limits))
        listening = []
        for cookie in crowd["cookies"] * 40:
            connecting = server.connect(f"topics={topic}", cookie=cookie, origin=base)
            socket = await stack.enter_async_context(connecting)
            first = await _next(socket, 30)
            assert first.get("topics") == [topic], first
            listening.append(asyncio.create_task(_hear(socket, told)))
        for own, token in crowd["agents"]:
            headers = {"Authorization": f"Bearer {token}"}
            start = (await client.get("/api/v1/events", params={"topics": own}, headers=headers)).json()["next"]
            listening += [asyncio.create_task(_poll_for(client, headers, own, start, told)) for _ in range(30)]
        await asyncio.to_thread(server.run, FLOOD, str(told), *topics)
        assert (await client.get("/healthz")).status_code == 200
        assert len(listening) == 260
        for heard in await asyncio.gather(*listening):
            assert heard == list(range(told))


async def _hear(socket: ClientConnection, count: int) -> list[int]:
    return [(await _next(socket, 60))["payload"]["n"] for _ in range(count)]


async def _poll_for(
    client: httpx.AsyncClient, headers: dict[str, str], topic: str, after: int, count: int
) -> list[int]:
    heard: list[int] = []
    while len(heard) < count:
        query: dict[str, str | int] = {"topics": topic, "after": after, "wait": 20}
        answer = await client.get("/api/v1/events", params=query, headers=headers)
        assert answer.status_code == 200, answer.text
        after = answer.json()["next"]
        heard += [event["payload"]["n"] for event in answer.json()["events"]]
    return heard

"""The event stream (server-sent events) through uvicorn: told as over a socket, resumed at a cursor, ended in words."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from tests.support.capabilities import ROOT
from tests.support.web import Web, serving

PATIENCE_S = 20
MANY, AT_ONCE = 30_000, 500
SETUP = """
import json
from tests import factories
pi = factories.make_user("pi")
agent = factories.make_agent(factories.make_lab("okafor", pi=pi), pi, "okafor-docking")
print(json.dumps({"token": factories.make_token(agent), "agent": agent.pk}))
"""
TELL = """
import sys
from django.db import transaction
from portal.core import live
with transaction.atomic():
    live.announce([live.News(name=name, topics=(sys.argv[1],), payload={}) for name in sys.argv[2:]])
"""
# As much as is asked for, at each line.
FLOOD = """
import sys
from django.db import transaction
from portal.core import live
for line in sys.stdin:
    first = int(line)
    with transaction.atomic():
        numbers = range(first, first + int(sys.argv[2]))
        live.announce([live.News(name=f"{number:0100}", topics=(sys.argv[1],)) for number in numbers])
"""
REVOKE = """
from principals.models import AgentToken
from principals.services.tokens import issuing as tokens
from tests import factories
token = AgentToken.objects.get()
tokens.revoke_agent_token(actor=factories.actor_of(token.agent.owner), token=token)
"""


@dataclass
class Portal:
    web: Web
    token: str
    topic: str

    def tell(self, *names: str) -> None:
        self.web.run(TELL, self.topic, *names)

    @contextmanager
    def flooding(self) -> Iterator[IO[str]]:
        """Give the input of a process that tells `AT_ONCE` at each line."""
        command = [sys.executable, "-W", "ignore", "-c", f"import django; django.setup()\n{FLOOD}"]
        options = [self.topic, str(AT_ONCE)]
        environment = self.web.environment
        with subprocess.Popen(
            [*command, *options], cwd=ROOT, env=environment, stdin=subprocess.PIPE, text=True
        ) as made:
            assert made.stdin is not None
            yield made.stdin

    @contextmanager
    def stream(self, *, last: str = "", **query: object) -> Iterator["Stream"]:
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Last-Event-ID": last} if last else {})
        url = f"{self.web.url}/api/v1/events/stream"
        with httpx.stream("GET", url, params=query, headers=headers, timeout=PATIENCE_S) as response:  # type: ignore[arg-type]
            yield Stream(response)


class Stream:
    """Reads messages as the standard says; `id` is the last cursor."""

    def __init__(self, response: httpx.Response) -> None:
        self.response, self.id = response, ""
        self._lines = response.iter_lines()

    def next(self) -> dict[str, Any]:
        kind, data = "", ""
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                self.id = value
            elif name == "data":
                data = value
            elif not line and data:
                told: dict[str, Any] = json.loads(data)
                assert told["type"] == kind
                return told
        raise EOFError

    def names(self, count: int) -> list[str]:
        return [self.next()["name"] for _ in range(count)]


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[Portal]:
    with serving(tmp_path / "var") as web:
        made = json.loads(web.run(SETUP))
        yield Portal(web, made["token"], f"agent:{made['agent']}")


def test_it_is_followed_resumed_and_ended_by_a_restart(portal: Portal) -> None:
    with portal.stream() as stream:
        assert stream.response.headers["content-type"] == "text/event-stream"
        hello = stream.next()
        assert (hello["type"], hello["topics"], stream.id) == ("hello", [portal.topic], "0")
        portal.tell("one", "two")
        assert (stream.names(2), stream.id) == (["one", "two"], "2")
        began = time.monotonic()
        assert portal.web.process is not None
        portal.web.process.send_signal(signal.SIGTERM)
        closed = stream.next()
        assert (closed["type"], closed["code"], closed["reason"]) == ("closed", 1012, "The portal restarts.")
        with pytest.raises(EOFError):
            stream.next()
    portal.web.process.wait(PATIENCE_S)
    assert time.monotonic() - began < 5
    portal.tell("three")
    portal.web.start()
    # What EventSource does: the address it was opened with, and the cursor in a header, which goes before it.
    with portal.stream(last="1", after=0) as stream:
        assert [stream.next()["seq"] for _ in range(4)] == [1, 2, 3, 3]
        portal.tell("four")
        assert stream.names(1) == ["four"]


def test_a_kill_loses_nothing_and_repeats_nothing(portal: Portal) -> None:
    with portal.stream() as stream:
        stream.next()
        portal.tell("one")
        assert stream.names(1) == ["one"]
        portal.web.kill()
        with pytest.raises((EOFError, httpx.TransportError)):
            stream.next()
    portal.tell("two")
    portal.web.start()
    with portal.stream(after=stream.id) as again:
        assert again.next()["seq"] == 1
        assert (again.names(1), again.next()["type"]) == (["two"], "caught_up")


def test_a_token_that_is_revoked_ends_it_within_5_s_with_the_reason(portal: Portal) -> None:
    with portal.stream() as stream:
        stream.next()
        portal.web.run(REVOKE)
        revoked = time.monotonic()
        told = stream.next()
        while told["type"] == "event":  # the agent hears that its token is revoked
            told = stream.next()
        assert (told["type"], told["code"], told["reason"]) == ("closed", 4401, "The token is revoked.")
        assert time.monotonic() - revoked < 5
    with portal.stream() as stream:
        assert (stream.response.status_code, json.loads(stream.response.read())["code"]) == (401, "token_revoked")


def test_what_is_refused_is_a_problem_before_the_stream_begins(portal: Portal) -> None:
    for query, status, code in (
        ({"topics": "facility:principals"}, 403, "topic_not_allowed"),
        ({"topics": "nonsense"}, 422, "topic_malformed"),
        ({"after": "minus"}, 422, "invalid"),
        ({"last": "x"}, 422, "invalid"),
    ):
        with portal.stream(**query) as stream:  # type: ignore[arg-type]
            assert (stream.response.status_code, json.loads(stream.response.read())["code"]) == (status, code)


def test_whoever_reads_slowly_must_resync_and_holds_up_nobody(portal: Portal) -> None:
    """One client reads nothing while more is told than its connection and its backlog hold."""
    request = (
        f"GET /api/v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {portal.token}\r\n\r\n"
    ).encode()
    with socket.socket() as slow, portal.stream() as quick:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", portal.web.port))
        slow.sendall(request)
        quick.next()
        while not slow.recv(4096).endswith(b"}\n\n\r\n"):  # its hello
            pass
        with portal.flooding() as flood:
            for first in range(0, MANY, AT_ONCE):  # never more than the backlog of whoever reads
                flood.write(f"{first}\n")
                flood.flush()
                assert [int(name) for name in quick.names(AT_ONCE)] == list(range(first, first + AT_ONCE))
        slow.settimeout(PATIENCE_S)
        heard = b""
        while b"event: resync" not in heard[-20_000:]:
            heard += slow.recv(65536)
        assert heard.count(b"event: event") < MANY

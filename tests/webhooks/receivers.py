"""Receivers on loopback: real sockets that note what they are sent and answer as a test wants."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """One request as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def seqs(self) -> list[int]:
        return [event["seq"] for event in self.json["data"].get("events", [])]


@dataclass
class Receiver:
    """A server whose answers a test sets: `answer(nth)` gives the status and headers of the nth request, from 1."""

    answer: Callable[[int], tuple[int, dict[str, str]]] = lambda nth: (200, {})
    got: list[Received] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/in"

    def note(self, received: Received) -> tuple[int, dict[str, str]]:
        with self.came:
            self.got.append(received)
            nth = len(self.got)
            self.came.notify_all()
        return self.answer(nth)

    def wait_for(self, count: int, patience_s: float = 60) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self.got) >= count, patience_s), f"{len(self.got)} of {count} came"


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, more = self.receiver.note(Received(headers, body))
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def receiving(receiver: Receiver | None = None) -> Iterator[Receiver]:
    """Run a receiver for a block."""
    receiver = receiver or Receiver()
    handler = type("Handler", (_Handler,), {"receiver": receiver})
    with ThreadingHTTPServer(("127.0.0.1", receiver.port), handler) as server:
        server.daemon_threads = True
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()

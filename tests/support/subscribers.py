"""Those who listen to job events over real sockets, each in a thread; they come back at their cursor."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from portal.cli.event_stream import read_messages

AGAIN_S = 0.2
SILENCE_S = 30.0
_BROKEN = (OSError, http.client.HTTPException, ConnectionClosed, InvalidHandshake, TimeoutError, EOFError)


@dataclass
class Heard:
    """One end of a job, and when it was read from the socket (seconds of the epoch)."""

    seq: int
    job: int
    state: str
    source: str
    at: float


@dataclass
class Subscriber:
    """Who listens, by `token` over server-sent events or by session `cookie` over a WebSocket; and what it heard."""

    name: str
    port: int
    token: str = ""
    cookie: str = ""
    ends: list[Heard] = field(default_factory=list)
    cursor: int | None = None
    connections: int = 0
    odd: list[dict[str, Any]] = field(default_factory=list)  # messages that nobody wants: a resync, a refusal
    is_stopped: bool = False

    def start(self) -> "Subscriber":
        self._thread = threading.Thread(target=self._follow, name=self.name, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self.is_stopped = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(SILENCE_S)

    def jobs(self) -> set[int]:
        """Return the jobs whose ends it heard."""
        return {heard.job for heard in list(self.ends)}

    def _follow(self) -> None:
        while not self.is_stopped:
            with suppress(*_BROKEN):
                for told in self._by_stream() if self.token else self._by_websocket():
                    self._take(told, time.time())
            time.sleep(AGAIN_S)

    def _take(self, told: dict[str, Any], at: float) -> None:
        kind = told["type"]
        self.connections += kind == "hello"
        if isinstance(told.get("seq"), int):
            self.cursor = told["seq"]
        if kind == "event" and told["name"] == "job.ended":
            said = told["payload"]
            self.ends.append(Heard(told["seq"], said["raw_id"], said["state"], said["source"], at))
        elif kind in ("resync", "closed"):
            self.odd.append(told)

    @property
    def _query(self) -> str:
        return "" if self.cursor is None else "?" + urlencode({"after": self.cursor})

    def _by_stream(self) -> Iterator[dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SILENCE_S)
        try:
            connection.connect()
            self._socket = connection.sock
            headers = {"Authorization": f"Bearer {self.token}"}
            connection.request("GET", f"/api/v1/events/stream{self._query}", headers=headers)
            with connection.getresponse() as response:
                if response.status == 200:
                    yield from read_messages(iter(response.readline, b""))
                else:
                    self.odd.append({"type": "refused", "status": response.status})
        finally:
            connection.close()

    def _by_websocket(self) -> Iterator[dict[str, Any]]:
        host = f"127.0.0.1:{self.port}"
        with connect(
            f"ws://{host}/ws/events/{self._query}", origin=f"http://{host}",  # type: ignore[arg-type]
            additional_headers={"Cookie": f"sessionid={self.cookie}"}, open_timeout=SILENCE_S, close_timeout=1,
        ) as opened:  # fmt: skip
            self._socket = opened.socket
            for text in opened:
                yield json.loads(text)

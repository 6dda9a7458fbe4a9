"""Many WebSocket subscribers in one lean process: epoll and the few rules of RFC 6455 that a reader needs.

It shares the cores with the server it measures, so it parses no JSON: of each event it notes who got it, which job and
change it tells of, and when. Read what it prints and the files it leaves with `tests.bench.events`.
"""

import argparse
import json
import os
import select
import signal
import socket
import sys
import time
from array import array
from pathlib import Path
from typing import Any

OPENING = 100  # handshakes at once
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
KINDS = {b"job.submitted": 0, b"job.started": 1, b"job.ended": 2}
SMALL_BUFFER = 4096
MASK = b"\0\0\0\0"  # masks nothing: no proxy stands between


class Subscriber:
    """One socket: what it sent us that is no whole frame yet, and what we noted of it."""

    __slots__ = ("answered", "closed_at", "closed_with", "facts", "is_open", "number", "rest", "resyncs", "socket")

    def __init__(self, number: int, facts: dict[str, str]) -> None:
        self.number, self.facts = number, facts
        self.rest = b""
        self.answered = self.is_open = False  # the handshake; the hello
        self.resyncs = 0
        self.closed_at, self.closed_with = 0.0, 0

    def connect(self, port: int, *, deflate: bool) -> None:
        self.socket = socket.socket()
        if self.stops_reading:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        token, topics = self.facts.get("token"), self.facts.get("topics", "")
        who = f"Authorization: Bearer {token}" if token else f"Cookie: sessionid={self.facts['cookie']}"
        lines = [
            f"GET /ws/events/?topics={topics} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket",
            "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            f"Origin: http://127.0.0.1:{port}", who,
        ]  # fmt: skip
        if deflate:
            lines.append("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
        self.socket.send("\r\n".join([*lines, "", ""]).encode())

    @property
    def stops_reading(self) -> bool:
        return self.facts["lab"] == "watchers"


def _frame(data: bytes, place: int) -> tuple[int, int] | None:
    """Return where the payload of the frame at `place` starts and ends; None while it is not whole (RFC 6455 §5.2)."""
    size, start = len(data), place + 2
    if size < start:
        return None
    length = data[place + 1]
    if length == 126:
        start += 2
        length = int.from_bytes(data[place + 2 : start], "big")
    elif length == 127:
        start += 8
        length = int.from_bytes(data[place + 2 : start], "big")
    return (start, start + length) if start <= size and start + length <= size else None


class Crowd:
    """All subscribers of this process, and what they heard: who, what (job and change), when."""

    def __init__(self, port: int, subscribers: list[Subscriber], *, deflate: bool) -> None:
        self.port, self.subscribers, self.deflate = port, subscribers, deflate
        self.poll = select.epoll()
        self.by_fd: dict[int, Subscriber] = {}
        self.open = 0
        self.who, self.what, self.when = array("i"), array("q"), array("d")
        self.pauses_at = self.reads_again_at = float("inf")
        self.stopped = False

    def run(self) -> None:
        """Open all, say so, and listen until told to stop."""
        waiting = list(reversed(self.subscribers))
        started = time.monotonic()
        while not self.stopped:
            while waiting and len(self.by_fd) - self.open < OPENING:
                self._connect(waiting.pop())
            before = self.open
            self._hear(1.0)
            if before < len(self.subscribers) == self.open:
                _tell(event="open", seconds=round(time.monotonic() - started, 1))
            now = time.monotonic()
            if now > self.pauses_at:
                self.pauses_at = float("inf")
                self._watchers(self.poll.unregister)
            if now > self.reads_again_at:
                self.reads_again_at = float("inf")
                self._watchers(lambda fd: self.poll.register(fd, select.EPOLLIN))

    def _watchers(self, act: Any) -> None:
        for fd, subscriber in self.by_fd.items():
            if subscriber.stops_reading:
                act(fd)

    def _connect(self, subscriber: Subscriber) -> None:
        subscriber.connect(self.port, deflate=self.deflate)
        fd = subscriber.socket.fileno()
        self.by_fd[fd] = subscriber
        self.poll.register(fd, select.EPOLLIN)

    def _hear(self, timeout: float) -> None:
        for fd, _ in self.poll.poll(timeout):
            subscriber = self.by_fd[fd]
            try:
                data = subscriber.socket.recv(65536)
            except OSError:
                data = b""
            if not data:
                self._lose(fd, subscriber)
            else:
                self._take(subscriber, subscriber.rest + data if subscriber.rest else data)

    def _lose(self, fd: int, subscriber: Subscriber) -> None:
        self.poll.unregister(fd)
        subscriber.socket.close()
        del self.by_fd[fd]
        self.open -= subscriber.is_open
        subscriber.closed_at = subscriber.closed_at or time.monotonic()

    def _take(self, subscriber: Subscriber, data: bytes) -> None:
        now, place = time.monotonic(), 0
        if not subscriber.answered:
            place = data.find(b"\r\n\r\n") + 4
            if place < 4:
                subscriber.rest = data
                return
            if not data.startswith(b"HTTP/1.1 101"):
                raise RuntimeError(f"refused: {data[:200]!r}")
            subscriber.answered = True
        while (found := _frame(data, place)) is not None:
            start, end = found
            self._read(subscriber, data[place], data, start, end, now)
            place = end
        subscriber.rest = data[place:]

    def _read(self, subscriber: Subscriber, kind: int, data: bytes, start: int, end: int, now: float) -> None:
        if kind & 15 == TEXT:
            if not subscriber.is_open:  # the first message is the hello; compressed, it is all that this reader needs
                if not kind & 64 and b'"hello"' not in data[start:end]:
                    raise RuntimeError(f"no hello: {data[start:end]!r}")
                subscriber.is_open, self.open = True, self.open + 1
                return
            at = data.find(b'"raw_id": ', start, end)
            if at > 0:
                named = data.index(b'"name": "', start, end) + 9
                name = data[named : data.index(b'"', named)]
                job = data[at + 10 : data.index(b",", at)]
                self.who.append(subscriber.number)
                self.what.append(int(job) * 4 + KINDS[name])
                self.when.append(now)
                return
            self._note(subscriber, json.loads(data[start:end]), now)
        elif kind & 15 == PING:
            payload = data[start:end]
            subscriber.socket.send(bytes([0x80 | PONG, 0x80 | len(payload)]) + MASK + payload)

    def _note(self, subscriber: Subscriber, message: dict[str, Any], now: float) -> None:
        if message["type"] == "closed":
            subscriber.closed_at, subscriber.closed_with = now, message["code"]
        elif message["type"] == "resync":
            subscriber.resyncs += 1
            if subscriber.stops_reading:  # it has what it is here for; to go on would be another load
                subscriber.socket.shutdown(socket.SHUT_RDWR)

    def leave(self, folder: Path) -> None:
        """Write what was heard where the main process finds it."""
        for name in ("who", "what", "when"):
            with (folder / name).open("wb") as file:
                getattr(self, name).tofile(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--subscribers", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--deflate", action="store_true")
    options = parser.parse_args()
    people = [json.loads(line) for line in options.subscribers.read_text().splitlines()]
    crowd = Crowd(options.port, [Subscriber(*each) for each in enumerate(people)], deflate=options.deflate)

    def stop(*_: object) -> None:
        crowd.stopped = True

    def pause(*_: object) -> None:
        crowd.pauses_at = 0.0

    def read_again(*_: object) -> None:
        crowd.reads_again_at = 0.0

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGUSR1, pause)
    signal.signal(signal.SIGUSR2, read_again)
    crowd.run()
    crowd.leave(options.folder)
    _tell(
        event="left",
        cpu_s=time.process_time(),
        resyncs={each.number: each.resyncs for each in crowd.subscribers if each.resyncs},
        closed={each.number: [each.closed_at, each.closed_with] for each in crowd.subscribers if each.closed_at},
    )
    sys.stdout.flush()
    os._exit(0)  # thousands of sockets are the kernel's to close


def _tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())

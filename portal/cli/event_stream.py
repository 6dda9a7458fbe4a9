"""The portal's event stream, followed in a thread: connected again at its cursor for as long as somebody waits."""

import json
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import IO, Any
from urllib.parse import urlencode

from portal.cli import client, posting

SILENCE_S = 45.0  # the portal says something every 15 s: after three times that the connection is dead
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
# What ends the wait: who asks, or what was asked, is at fault. All else is worth another try.
FINAL = frozenset({400, 401, 403, 404, 405, 413, 414, 422})
CLOSE_BASE = 4000
LOST, REFUSED = "lost", "refused"

Message = dict[str, Any]


def read_messages(lines: Iterable[bytes]) -> Iterator[Message]:
    """Read the messages of a stream (WHATWG HTML, 9.2): the JSON of each; comments and what is none are left out."""
    data: list[str] = []
    for line in lines:
        text = line.decode("utf-8", errors="replace").rstrip("\r\n")
        if text.startswith("data:"):
            data.append(text[5:].removeprefix(" "))
        elif not text and data:
            with_type = _read("\n".join(data))
            data = []
            if with_type:
                yield with_type


def _read(text: str) -> Message:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) and isinstance(told.get("type"), str) else {}


class EventStream:
    """Messages of the portal as they come, and between them `lost {why}` and, at last, `refused {problem}`.

    Before `start`: `cursor`, where to begin, and `topics`, what to hear; None and "": now, and all that is one's own.
    """

    def __init__(self) -> None:
        self.cursor: int | None = None
        self.topics = ""
        self._told: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._follow, name="events", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def next(self, timeout_s: float) -> Message | None:
        """Return the next message, or None where none comes in time."""
        try:
            return self._told.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            return None

    def _follow(self) -> None:
        pause, over = threading.Event(), False
        failures = 0
        while not over:
            heard = False
            asked_s = 0.0
            try:
                for told in self._connect():
                    heard = True
                    if told["type"] == "closed":
                        over = self._close(told)
                        break
                    if isinstance(told.get("seq"), int):
                        self.cursor = told["seq"]
                    self._told.put(told)
                else:
                    self._told.put({"type": LOST, "why": "The portal closed the stream."})
            except client.PortalRefused as refused:
                over = refused.status in FINAL
                why = refused.problem.get("detail") or refused.problem.get("title")
                self._told.put({"type": REFUSED if over else LOST, "why": why, "problem": refused.problem})
                asked_s = float(refused.problem.get("retry_after_s") or 0)
            except client.PortalUnreachable as error:
                self._told.put({"type": LOST, "why": str(error)})
            failures = 0 if heard else failures + 1
            if not over:
                pause.wait(posting.wait_after(failures, asked_s, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S))

    def _connect(self) -> Iterator[Message]:
        asked = {"after": self.cursor, "topics": self.topics or None}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        with client.asking(f"/events/stream{'?' if query else ''}{query}", timeout_s=SILENCE_S) as response:
            yield from read_messages(_lines(response))

    def _close(self, told: Message) -> bool:
        """Pass on why the portal closed; say whether that is for good."""
        is_final = told.get("code", 0) - CLOSE_BASE in FINAL
        problem = {"detail": told.get("reason"), "code": "closed", "remedy": told.get("remedy")}
        self._told.put({"type": REFUSED if is_final else LOST, "why": told.get("reason"), "problem": problem})
        return is_final


def _lines(response: IO[bytes]) -> Iterator[bytes]:
    while line := response.readline():
        yield line

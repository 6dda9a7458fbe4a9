"""What records of any form tell of processes, before it is a fact: times are nanoseconds since 1970."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from telemetry.engine.collector.facts import MOST_WORDS
from telemetry.engine.collector.proc import ARGV_BYTES

SECOND_NS: Final = 1_000_000_000
LARGEST_PID: Final = 2**31 - 1


class Program(NamedTuple):
    """A process runs a program. `argv` is empty where nobody told; `start_ns`: of the process, where it is told.

    `again`: the process is the one that had this number before. Without `is_news` it ran already, and is only met.
    """

    at_ns: int
    pid: int
    parent: int
    uid: int
    tty: int
    exe: bytes
    argv: tuple[bytes, ...]
    start_ns: int = 0
    again: bool = False
    is_news: bool = True


class Birth(NamedTuple):
    """A process was forked. `start_ns` is 0 where only the event's time is told."""

    at_ns: int
    parent: int
    pid: int
    start_ns: int = 0


class End(NamedTuple):
    """A process ended."""

    at_ns: int
    pid: int


class Loss(NamedTuple):
    """So many events are not told."""

    number: int


Record: TypeAlias = Program | Birth | End | Loss


class Unreadable(Exception):
    """A line is none of the form, or lacks what is needed."""


class Form(Protocol):
    """A way to read records, a line at a time."""

    def read(self, line: bytes) -> Iterable[Record]:
        """Return what a line completes. Errors: `Unreadable`."""

    def idle(self) -> Iterable[Record]:
        """Return what waits for more lines, for none come."""


def load(line: bytes) -> dict[str, Any]:
    """Read a JSON object. Errors: `Unreadable`."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        raise Unreadable("no JSON") from None
    return table(told)


def table(told: object) -> dict[str, Any]:
    """Return an object of JSON. Errors: `Unreadable` for anything else."""
    if not isinstance(told, dict):
        raise Unreadable("no object")
    return told


def number(told: object, *, least: int = 0, most: int = 2**63) -> int:
    """Return a whole number that is given as such, or as text. Errors: `Unreadable`."""
    try:
        value = int(told) if isinstance(told, int | str) else None
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        raise Unreadable("no number")
    return value


def pid_of(told: object) -> int:
    """Return the number of a process. Errors: `Unreadable`."""
    return number(told, least=1, most=LARGEST_PID)


def uid_of(told: object) -> int:
    """Return the number of an account. Errors: `Unreadable`."""
    return number(told, most=2**32 - 1)


def time_of(told: object) -> int:
    """Return a time of RFC 3339, to the nanosecond. Errors: `Unreadable`."""
    try:
        whole, _, rest = str(told).removesuffix("Z").partition(".")
        zone = "" if whole.count("+") else "+00:00"
        return int(datetime.fromisoformat(whole + zone).timestamp()) * SECOND_NS + int(rest[:9].ljust(9, "0") or 0)
    except (ValueError, OverflowError):
        raise Unreadable("no time") from None


def text(told: object) -> bytes:
    """Return a text as bytes; anything else is none."""
    return told.encode(errors="replace") if isinstance(told, str) else b""


def bounded(words: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return so many of the words, and as much of them, as `/proc` would be read."""
    kept, size = list[bytes](), 0
    for word in words:
        if len(kept) >= MOST_WORDS or size >= ARGV_BYTES:
            break
        kept.append(word[: ARGV_BYTES - size])
        size += len(word) + 1
    return tuple(kept)

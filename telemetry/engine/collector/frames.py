"""Facts on a pipe: a length, a kind, a body of numbers, and bytes that are passed on as they are.

One end may do much, the other little: so nothing here runs what it reads, and nothing grows without end.
"""

import struct
from collections.abc import Iterator
from typing import Final

from telemetry.engine.collector import facts
from telemetry.engine.collector.facts import Executed, Exited, Fact, Forked, Key, Sighting, Snapshot, Told
from telemetry.engine.collector.origins import LARGEST_JOB, UNTOLD

LONGEST: Final = 65_536  # of a frame: 32 KiB of words, a path of 4 KiB, and some numbers
MOST_SIGHTINGS: Final = 200_000  # of a snapshot

_HEADER: Final = struct.Struct("=IB")
_FORK: Final = struct.Struct("=QIIQ")
_EXEC: Final = struct.Struct("=QI?")
_EXIT: Final = struct.Struct("=QI")
_WHOLE_FORK: Final = struct.Struct("=IBQIIQ")
_WHOLE_EXIT: Final = struct.Struct("=IBQI")
_SNAPSHOT: Final = struct.Struct("=Q")
_TOLD: Final = struct.Struct("=?QQQQQQQ")
_SIGHTING: Final = struct.Struct("=IQIqq?qHHHI")
_FORKED, _EXECUTED, _EXITED, _SIGHTED, _TAKEN, _SAID, _ENDING = range(1, 8)


class BrokenFrame(Exception):
    """What came is no frame: the two ends are not of one version, or something else writes."""


def encode(fact: Fact) -> bytes:
    """Return the frames of a fact."""
    if isinstance(fact, Forked):
        return forked(fact.at_ns, fact.parent, *fact.key)
    if isinstance(fact, Exited):
        return exited(*fact)
    if isinstance(fact, Executed):
        seen = _sighting(fact.sighting) if fact.sighting else b""
        return _frame(_EXECUTED, _EXEC.pack(fact.at_ns, fact.pid, fact.left_out) + seen)
    if isinstance(fact, Snapshot):
        told = b"".join(_frame(_SIGHTED, _sighting(each)) for each in fact.sightings)
        return told + _frame(_TAKEN, _SNAPSHOT.pack(fact.at_ns))
    if isinstance(fact, Told):
        return _frame(_SAID, _TOLD.pack(fact.mode == "events", *fact[1:]))
    return _frame(_ENDING, b"")


def forked(at_ns: int, parent: int, pid: int, start: int) -> bytes:
    """Return the frame of a `Forked`: there are so many that each step counts."""
    return _WHOLE_FORK.pack(_FORK.size, _FORKED, at_ns, parent, pid, start)


def exited(at_ns: int, pid: int) -> bytes:
    """Return the frame of an `Exited`."""
    return _WHOLE_EXIT.pack(_EXIT.size, _EXITED, at_ns, pid)


def _frame(kind: int, body: bytes) -> bytes:
    return _HEADER.pack(len(body), kind) + body


def _sighting(it: Sighting) -> bytes:
    lengths = len(it.name), len(it.exe), len(it.argv)
    return _SIGHTING.pack(*it[:6], it.job, it.marker, *lengths) + it.name + it.exe + it.argv


class Decoder:
    """Make facts of what comes from a pipe, in pieces of any size."""

    def __init__(self) -> None:
        self._rest = b""
        self._sightings: list[Sighting] = []

    def feed(self, data: bytes) -> Iterator[Fact]:
        """Yield the facts that are complete. Errors: `BrokenFrame`."""
        data = self._rest + data if self._rest else data
        at = 0
        try:
            while at + _HEADER.size <= len(data):
                length, kind = _HEADER.unpack_from(data, at)
                if length > LONGEST:
                    raise BrokenFrame("a frame without end")
                begin = at + _HEADER.size
                if begin + length > len(data):
                    break
                at = begin + length
                if (fact := self._fact(kind, data[begin:at])) is not None:
                    yield fact
        except struct.error as error:
            raise BrokenFrame(str(error)) from None
        finally:
            self._rest = data[at:]

    def _fact(self, kind: int, body: bytes) -> Fact | None:
        if kind == _FORKED:
            at_ns, parent, pid, start = _FORK.unpack(body)
            return Forked(at_ns, parent, Key(pid, start))
        if kind == _EXECUTED:
            at_ns, pid, left_out = _EXEC.unpack_from(body)
            return Executed(at_ns, pid, _seen(body[_EXEC.size :]) if len(body) > _EXEC.size else None, left_out)
        if kind == _EXITED:
            return Exited(*_EXIT.unpack(body))
        if kind == _SIGHTED:
            if len(self._sightings) < MOST_SIGHTINGS:
                self._sightings.append(_seen(body))
            return None
        return self._rare(kind, body)

    def _rare(self, kind: int, body: bytes) -> Fact:
        if kind == _TAKEN:
            (at_ns,) = _SNAPSHOT.unpack(body)
            sightings, self._sightings = tuple(self._sightings), []
            return Snapshot(at_ns, sightings)
        if kind == _SAID:
            by_events, *numbers = _TOLD.unpack(body)
            mode: facts.Mode = "events" if by_events else "walk"
            return Told(mode, *numbers)
        if kind == _ENDING:
            return facts.Ending()
        raise BrokenFrame(f"a frame of kind {kind}")


def _seen(body: bytes) -> Sighting:
    pid, start, parent, uid, tty, ended, job, marker, name, exe, argv = _SIGHTING.unpack_from(body)
    at = _SIGHTING.size
    if at + name + exe + argv != len(body):
        raise BrokenFrame("a sighting that is cut short")
    if not UNTOLD <= job <= LARGEST_JOB:
        raise BrokenFrame("a job that there cannot be")
    ends = at + name, at + name + exe
    texts = body[at : ends[0]], body[ends[0] : ends[1]], body[ends[1] :]
    return Sighting(pid, start, parent, uid, tty, ended, *texts, job, marker)

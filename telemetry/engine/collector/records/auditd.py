"""Records of Linux audit, as auditd hands them to its plugins and writes them to its log (auditd-plugins(5)).

An event is several lines with one serial number: SYSCALL, then what belongs to it, then PROCTITLE, and for plugins EOE.
Serial numbers have no gaps, so they say what was lost, and in which order events are told. Texts that are not plain are
written in hexadecimal digits, long words in pieces (`a1[0]=`); behind 0x1D stands what auditd knows of the numbers.
"""

import re
from typing import Final, NamedTuple

from telemetry.engine.collector.facts import MOST_WORDS
from telemetry.engine.collector.proc import ARGV_BYTES
from telemetry.engine.collector.records.telling import (
    Birth,
    End,
    Program,
    Record,
    Unreadable,
    bounded,
    number,
    pid_of,
    uid_of,
)

_LINE: Final = re.compile(
    rb"(?:node=(\S+) )?(?:audit: )?type=(\w+)(?:\[\d+\])? (?:msg=)?audit\((\d{1,11})\.(\d{3}):(\d{1,19})\): ?(.*)",
    re.DOTALL,
)
_FIELD: Final = re.compile(rb'([A-Za-z_]\w*(?:\[\d+\])?)=("[^"]*"|[^\s"]+)')
_WORD: Final = re.compile(rb"a(\d{1,7})(?:\[\d+\])?\Z")
_NUMBERED: Final = {b"1300": b"SYSCALL", b"1309": b"EXECVE", b"1320": b"EOE", b"1327": b"PROCTITLE"}
_ENRICHED: Final = b"\x1d"
_CLONE_THREAD: Final = 0x10000
_NO_TERMINAL: Final = (b"(none)", b"?", b"")

_EXEC, _FORK, _CLONE, _EXIT = "exec", "fork", "clone", "exit"
_NAMES: Final = {
    b"execve": _EXEC, b"execveat": _EXEC, b"fork": _FORK, b"vfork": _FORK, b"clone": _CLONE, b"clone3": _FORK,
    b"exit_group": _EXIT,
}  # fmt: skip
_GENERIC: Final = {221: _EXEC, 281: _EXEC, 220: _CLONE, 435: _FORK, 94: _EXIT}
# What a number means depends on the architecture: linux/audit.h, and unistd.h of each.
_CALLS: Final[dict[bytes, dict[int, str]]] = {
    b"c000003e": {59: _EXEC, 322: _EXEC, 57: _FORK, 58: _FORK, 56: _CLONE, 435: _FORK, 231: _EXIT},  # x86_64
    b"40000003": {11: _EXEC, 358: _EXEC, 2: _FORK, 190: _FORK, 120: _CLONE, 435: _FORK, 252: _EXIT},  # i386
    b"c00000b7": _GENERIC,  # aarch64
    b"c00000f3": _GENERIC,  # riscv64
    b"c0000015": {11: _EXEC, 362: _EXEC, 2: _FORK, 189: _FORK, 120: _CLONE, 435: _FORK, 234: _EXIT},  # ppc64le
}


class Line(NamedTuple):
    """A record: of which event, and what stands in it."""

    node: bytes
    kind: bytes
    at_ns: int
    serial: int
    rest: bytes


def cut(line: bytes) -> Line:
    """Take a line apart. Errors: `Unreadable`."""
    found = _LINE.match(line.strip())
    if not found:
        raise Unreadable("no record of audit")
    node, kind, seconds, thousandths, serial, rest = found.groups()
    at_ns = (int(seconds) * 1000 + int(thousandths)) * 1_000_000
    return Line(node or b"", _NUMBERED.get(kind, kind), at_ns, int(serial), rest)


def plain(value: bytes) -> bytes:
    """Return a text that may stand in quotation marks, or in hexadecimal digits."""
    if value.startswith(b'"'):
        return value[1:-1]
    if value in (b"(null)", b"(none)"):
        return b""
    try:
        return bytes.fromhex(value.decode())
    except ValueError:
        return value


class Event:
    """What is known of an event so far; never more than there would be read of `/proc`."""

    __slots__ = ("_call", "_title", "_words", "at_ns", "is_program", "is_whole", "size")

    def __init__(self, at_ns: int) -> None:
        self.at_ns = at_ns
        self.is_program = self.is_whole = False
        self.size = 0
        self._call: dict[bytes, bytes] = {}
        self._words: dict[int, bytes] = {}
        self._title = b""

    @property
    def matters(self) -> bool:
        """Whether it may tell of a process."""
        return self.is_program or bool(self._call)

    def add(self, line: Line) -> None:
        """Take one of its records."""
        if line.kind == b"SYSCALL":
            self._call = dict(_FIELD.findall(line.rest.replace(_ENRICHED, b" ")))
        elif line.kind == b"EXECVE":
            self.is_program = True
            self._add_words(line.rest.partition(_ENRICHED)[0])
        elif line.kind == b"PROCTITLE":
            found = _FIELD.search(line.rest.partition(_ENRICHED)[0])
            self._title = plain(found[2])[:ARGV_BYTES] if found else b""
        self.is_whole = self.is_whole or line.kind in (b"PROCTITLE", b"EOE")

    def _add_words(self, rest: bytes) -> None:
        for name, value in _FIELD.findall(rest):
            found = _WORD.match(name)
            place = int(found[1]) if found else MOST_WORDS
            if place < MOST_WORDS and self.size < ARGV_BYTES:
                word = plain(value)[: ARGV_BYTES - self.size]
                self._words[place] = self._words.get(place, b"") + word
                self.size += len(word) + 1

    def records(self) -> list[Record]:
        """Return what it tells, as far as it came. Errors: `Unreadable`."""
        call = self._call
        kind = _EXEC if self.is_program else self._kind()
        if not call or not kind or call.get(b"success") == b"no":
            if self.is_program and not call:
                raise Unreadable("the call is not told")
            return []
        pid = pid_of(_number(call, b"pid"))
        if kind == _EXIT:
            return [End(self.at_ns, pid)]
        if kind == _EXEC:
            return [self._program(pid)]
        is_thread = kind == _CLONE and int(call.get(b"a0", b"0"), 16) & _CLONE_THREAD
        return [] if is_thread else [Birth(self.at_ns, pid, pid_of(_number(call, b"exit")))]

    def _kind(self) -> str:
        if name := self._call.get(b"SYSCALL"):
            return _NAMES.get(name, "")
        calls = _CALLS.get(self._call.get(b"arch", b""), {})
        return calls.get(number(_number(self._call, b"syscall")), "")

    def _program(self, pid: int) -> Program:
        call = self._call
        words = [self._words[place] for place in range(len(self._words)) if place in self._words]
        argv = bounded(words or self._title.split(b"\0"))
        return Program(
            self.at_ns, pid, number(_number(call, b"ppid")), uid_of(_number(call, b"uid")),
            0 if call.get(b"tty", b"") in _NO_TERMINAL else 1, plain(call.get(b"exe", b"")),
            argv if any(argv) else (),
        )  # fmt: skip


def _number(call: dict[bytes, bytes], name: bytes) -> str:
    return call.get(name, b"").decode(errors="replace")

"""Events of audit out of their lines, in the order of their serial numbers, however the lines are mixed.

Nothing waits without end: an event that is never completed is told as far as it came, and a number that never comes is
counted as lost, once the records are two seconds further, or none come any more.
"""

import re
from collections.abc import Iterator
from typing import Final

from telemetry.engine.collector.records.auditd import Event, Line, cut
from telemetry.engine.collector.records.telling import SECOND_NS, Loss, Record, Unreadable

PATIENCE_NS: Final = 2 * SECOND_NS
MOST_WAITING: Final = 4096  # events
MOST_BYTES: Final = 8 << 20  # of their words
FAR: Final = 1_000_000  # a number so far away is another count: the node or its audit began anew
BACK_NS: Final = 60 * SECOND_NS  # a time so much earlier: the clock was wrong, and was put right
_OWN: Final = b"DAEMON_"  # of auditd, which counts by itself
_LOST: Final = re.compile(rb"audit_lost=(\d{1,18})")
_BACKLOG: Final = b"audit: backlog limit exceeded"


class Assembler:
    """A stream of audit records of one node, those of other nodes left out."""

    def __init__(self) -> None:
        self._waiting: dict[int, Event] = {}
        self._next: int | None = None  # the number that comes next
        self._newest_ns = self._looked_ns = 0
        self._size = 0
        self._node: bytes | None = None
        self._told_lost: int | None = None

    def read(self, line: bytes) -> Iterator[Record]:
        """Yield what a line completes. Errors: `Unreadable`."""
        if b"audit_lost=" in line or _BACKLOG in line:
            yield from self._kernel_says(line)
            return
        found = cut(line)
        self._node = found.node if self._node is None else self._node
        if found.node != self._node:
            raise Unreadable("another node's")
        if found.kind.startswith(_OWN):
            return
        yield from self._add(found)
        yield from self._release()

    def idle(self) -> Iterator[Record]:
        """Yield what waits: no more lines come for now."""
        for serial in sorted(self._waiting):
            yield from self._give(serial)

    def _kernel_says(self, line: bytes) -> Iterator[Record]:
        """Yield what the kernel's log says of losses, where it is among the records: a total, then why."""
        if found := _LOST.search(line):
            total = int(found[1])
            before, self._told_lost = self._told_lost, total
            yield Loss(total - before if before is not None and total >= before else 1)
        elif self._told_lost is None:
            yield Loss(1)

    def _add(self, line: Line) -> Iterator[Record]:
        if self._next is None or abs(line.serial - self._next) > FAR:
            yield from self.idle()
            self._next, self._newest_ns = line.serial, line.at_ns
        if self._newest_ns - line.at_ns > BACK_NS:
            self._newest_ns = self._looked_ns = line.at_ns
        self._newest_ns = max(self._newest_ns, line.at_ns)
        event = self._waiting.get(line.serial)
        if event is None:
            if line.serial < self._next and line.kind not in (b"SYSCALL", b"EXECVE"):
                return  # what is left of one that was told
            event = self._waiting[line.serial] = Event(line.at_ns)
        before = event.size
        event.add(line)
        self._size += event.size - before

    def _release(self) -> Iterator[Record]:
        while (event := self._waiting.get(self._next or 0)) is not None and _is_ready(event):
            yield from self._give(self._next or 0)
        is_full = len(self._waiting) > MOST_WAITING or self._size > MOST_BYTES
        if not self._waiting or (not is_full and self._newest_ns - self._looked_ns < PATIENCE_NS // 8):
            return
        self._looked_ns = self._newest_ns
        for serial in sorted(self._waiting):
            event = self._waiting[serial]
            is_late = serial < (self._next or 0) and _is_ready(event)
            is_over = abs(self._newest_ns - event.at_ns) > PATIENCE_NS
            is_full = len(self._waiting) > MOST_WAITING or self._size > MOST_BYTES
            follows = serial == self._next and _is_ready(event)
            if is_late or is_over or is_full or follows:
                yield from self._give(serial)
            elif serial >= (self._next or 0):
                return

    def _give(self, serial: int) -> Iterator[Record]:
        """Yield an event, and before it what its number says of others."""
        event = self._waiting.pop(serial)
        self._size -= event.size
        if self._next is not None and serial >= self._next:
            if serial > self._next:
                yield Loss(serial - self._next)
            self._next = serial + 1
        try:
            yield from event.records()
        except (Unreadable, ValueError):
            yield Loss(1)


def _is_ready(event: Event) -> bool:
    return event.is_whole or not event.matters

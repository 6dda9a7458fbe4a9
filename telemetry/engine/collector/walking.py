"""The same facts without the kernel's events: `/proc` looked at a few times a second, as the published measurement did.

What begins and ends between two looks is missed. A process that runs what its parent runs was forked; it is taken to
have run a program once that is another one.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from telemetry.engine.collector.facts import Executed, Exited, Forked, Key, Sighting, Snapshot
from telemetry.engine.collector.proc import Proc

A_SECOND: Final = 5  # looks
YOUNG_NS: Final = 2_000_000_000  # so long a process is looked at each time; later once in `TURNS`
TURNS: Final = 5


class _Known(NamedTuple):
    start: int
    name: bytes
    runs: int  # a digest, for comparing
    until_ns: int  # young until then


class Walker:
    """Make facts of what changed in a `/proc` between two looks."""

    def __init__(self, proc: Proc) -> None:
        self._proc = proc
        self._known: dict[int, _Known] = {}
        self._passed: dict[int, int] = {}  # what is not to be looked at, and until when that may change soon
        self._turn = 0

    def snapshot(self, now_ns: int) -> Snapshot:
        """Return all processes, from which steps go on."""
        found = tuple(self._proc.walk())
        self._known = {each.pid: _Known(each.start, each.name, _digest(each), 0) for each in found}
        return Snapshot(now_ns, found)

    def step(self, now_ns: int) -> Iterator[Forked | Executed | Exited]:
        """Yield what changed since the last look; parents come before what they started."""
        self._turn = (self._turn + 1) % TURNS
        pids = self._proc.pids()
        living = set(pids)
        for pid in self._passed.keys() - living:
            del self._passed[pid]
        for pid in self._known.keys() - living:
            del self._known[pid]
            yield Exited(now_ns, pid)
        found = [seen for pid in pids if self._is_due(pid, now_ns) and (seen := self._look(pid, now_ns))]
        for seen in sorted(found, key=lambda each: (each.start, each.pid)):
            yield from self._changes(seen, now_ns)

    def _look(self, pid: int, now_ns: int) -> Sighting | None:
        seen = self._proc.look(pid)
        if self._proc.only:
            if seen is None:
                self._passed.setdefault(pid, now_ns + YOUNG_NS)
            else:
                self._passed.pop(pid, None)
        return seen

    def _is_due(self, pid: int, now_ns: int) -> bool:
        known = self._known.get(pid)
        until_ns = known.until_ns if known else self._passed.get(pid)
        return until_ns is None or now_ns < until_ns or pid % TURNS == self._turn

    def _changes(self, seen: Sighting, now_ns: int) -> Iterator[Forked | Executed | Exited]:
        known, runs = self._known.get(seen.pid), _digest(seen)
        is_new = known is None or known.start != seen.start
        if known is not None and is_new:
            yield Exited(now_ns, seen.pid)
        above = self._known.get(seen.parent)
        # Of one that ended already the name alone is left, which it has from its parent until it runs a program.
        if is_new and above is not None and (above.name == seen.name if seen.ended else above.runs == runs):
            yield Forked(now_ns, seen.parent, Key(seen.pid, seen.start))
        elif is_new or (known and known.runs != runs and not seen.ended):
            yield Executed(now_ns, seen.pid, seen)
        until_ns = now_ns + YOUNG_NS if is_new or known is None else known.until_ns
        self._known[seen.pid] = _Known(seen.start, seen.name, runs, until_ns)


def _digest(seen: Sighting) -> int:
    return hash((seen.exe, seen.argv))

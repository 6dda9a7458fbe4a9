"""Facts out of what records tell: which process a number is, who is above it, and when it ended.

Records say less than the kernel does: starts, forks and ends may be missing. While a record is new, `/proc` is asked
for what it lacks; of an old one `/proc` knows nothing any more, for numbers are given out anew.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from telemetry.engine.collector.facts import Executed, Exited, Forked, Found, Key, Sighting, Snapshot
from telemetry.engine.collector.origins import NOT_ASKED
from telemetry.engine.collector.proc import Proc
from telemetry.engine.collector.records.telling import SECOND_NS, Birth, Loss, Program, Record
from telemetry.engine.collector.watch import MOST_PROCESSES, SLACK_TICKS

LIVE_NS: Final = 60 * SECOND_NS  # so long `/proc` is asked about what a record names
FUTURE_NS: Final = 5 * SECOND_NS  # no record is of later
LINGER_NS: Final = 2 * SECOND_NS  # what an ended process started may be told of after its end
SWEEP_NS: Final = 30 * SECOND_NS
_DEEPEST: Final = 64

Telling: TypeAlias = Executed | Exited | Forked | Found | Snapshot


class _Known(NamedTuple):
    start: int
    parent: int


class Translator:
    """Make facts of records, in their order. `proc` is None where they are of another time or node.

    `boot_ns`: when starts begin to count; `tick_ns`: their unit. `unknown`: records that make no sense here; of the
    processes that began to be told of, `orphans` had nobody above them whom anybody told of.
    """

    def __init__(self, proc: Proc | None, *, boot_ns: int, tick_ns: int) -> None:
        self._proc, self._boot_ns, self._tick_ns = proc, boot_ns, tick_ns
        self._known: dict[int, _Known] = {}
        self._ending: dict[int, int] = {}  # when, in that order but for a little
        self._missing: set[int] = set()  # at the last sweep
        self._swept_ns = 0
        self.unknown = self.programs = self.orphans = 0

    def look(self, now_ns: int) -> Iterator[Telling]:
        """Yield all processes there are now."""
        if self._proc is not None:
            found = tuple(self._proc.walk())
            self._known = {each.pid: _Known(each.start, each.parent) for each in found}
            self._swept_ns = now_ns
            yield Snapshot(now_ns, found)

    def take(self, record: Record, now_ns: int) -> Iterator[Telling]:
        """Yield what a record comes to."""
        if isinstance(record, Loss):
            return
        if not self._boot_ns <= record.at_ns <= now_ns + FUTURE_NS:
            self.unknown += 1
            return
        yield from self.settle(record.at_ns)
        if isinstance(record, Program):
            yield from self._run(record, now_ns)
        elif isinstance(record, Birth):
            yield from self._fork(record, now_ns)
        elif record.pid in self._known:
            self._ending.setdefault(record.pid, record.at_ns)

    def settle(self, until_ns: int) -> Iterator[Telling]:
        """Yield the ends that nothing is told of any more by a time."""
        while self._ending:
            pid, at_ns = next(iter(self._ending.items()))
            if at_ns + LINGER_NS > until_ns:
                return
            yield from self._end(pid, at_ns)

    def sweep(self, now_ns: int) -> Iterator[Telling]:
        """Yield what began and ended without a record, some times a minute: ends once they were missed twice."""
        if self._proc is None or now_ns - self._swept_ns < SWEEP_NS:
            return
        self._swept_ns = now_ns
        living = set(self._proc.pids())
        missing = self._known.keys() - living
        for pid in missing & self._missing:
            yield from self._end(pid, now_ns)
        self._missing = missing - self._missing
        found = [seen for pid in living - self._known.keys() if (seen := self._proc.look(pid))]
        for seen in sorted(found, key=lambda each: (each.start, each.pid)):
            yield from self._meet(seen, now_ns)

    # --- records -----------------------------------------------------------------------------------------------
    def _run(self, told: Program, now_ns: int) -> Iterator[Telling]:
        pid = told.pid
        if pid in self._ending and told.at_ns >= self._ending[pid]:
            yield from self._end(pid, self._ending[pid])
        known = self._known.get(pid)
        if known is not None and not told.is_news:
            return
        seen = self._seen(pid, told.at_ns, now_ns)
        start = self._start(told, known, seen)
        if known is None or known.start != start:
            yield from self._meet_above(told.parent, told.at_ns, now_ns)
            self.orphans += told.parent not in self._known
            self._keep(pid, start, told.parent)
        argv = b"".join(word + b"\0" for word in told.argv) or (seen.argv if seen else b"")
        exe = told.exe or (seen.exe if seen else b"")
        name = (told.argv[0] if told.argv else exe).rpartition(b"/")[2][:15]
        tty = told.tty or (seen.tty if seen else 0)
        place = (seen.job, seen.marker) if seen else (NOT_ASKED, 0)
        sighting = Sighting(pid, start, told.parent, told.uid, tty, False, name, exe, argv, *place)
        self._missing.discard(pid)
        if told.is_news:
            self.programs += 1
            yield Executed(told.at_ns, pid, sighting)
        else:
            yield Found(told.at_ns, sighting)

    def _start(self, told: Program, known: _Known | None, seen: Sighting | None) -> int:
        """Return which start a process has: one that is known for the same process stays, for it is its name."""
        at = self._ticks(told.start_ns or told.at_ns)
        if seen is not None:
            at = seen.start
        if known is None:
            return at
        is_told = seen is not None or told.start_ns
        if is_told:
            # It was known by its first record; in truth it began before that, and no process after it did.
            return known.start if at <= known.start + SLACK_TICKS else at
        # Nobody told: it has the parent that it had, or that one ended and another took it over.
        is_same = told.again or known.parent == told.parent or known.parent not in self._known
        return known.start if is_same else at

    def _fork(self, told: Birth, now_ns: int) -> Iterator[Telling]:
        start, known = self._ticks(told.start_ns or told.at_ns), self._known.get(told.pid)
        if known is not None and told.pid not in self._ending and self._is_known_start(known, start, told):
            return
        seen = self._seen(told.pid, told.at_ns, now_ns)
        if seen is not None and seen.parent not in (told.parent, 1):
            return  # the number is that of a container
        yield from self._meet_above(told.parent, told.at_ns, now_ns)
        if known is not None:
            yield from self._end(told.pid, self._ending.get(told.pid, told.at_ns))
        start = seen.start if seen else start
        self._keep(told.pid, start, told.parent)
        yield Forked(told.at_ns, told.parent, Key(told.pid, start))

    def _is_known_start(self, known: _Known, start: int, told: Birth) -> bool:
        """Say whether a fork is that of the process that is known: its program may be told of before its fork is."""
        second = SECOND_NS // self._tick_ns
        return start <= known.start + SLACK_TICKS if told.start_ns else abs(start - known.start) <= second

    # --- /proc -------------------------------------------------------------------------------------------------
    def _seen(self, pid: int, at_ns: int, now_ns: int) -> Sighting | None:
        """Return a process that a new record names, as it is now; None where its number is another's, or it is gone."""
        if self._proc is None or now_ns - at_ns > LIVE_NS:
            return None
        seen = self._proc.look(pid)
        return seen if seen and seen.start <= self._ticks(at_ns) + SLACK_TICKS else None

    def _meet_above(self, pid: int, at_ns: int, now_ns: int) -> Iterator[Telling]:
        """Yield those above a process of whom nothing was told, the uppermost first."""
        line = list[Sighting]()
        while pid > 0 and pid not in self._known and len(line) < _DEEPEST:
            seen = self._seen(pid, at_ns, now_ns)
            if seen is None:
                break
            line.append(seen)
            pid = seen.parent
        for seen in reversed(line):
            yield from self._meet(seen, at_ns)

    def _meet(self, seen: Sighting, at_ns: int) -> Iterator[Telling]:
        self._keep(seen.pid, seen.start, seen.parent)
        yield Found(at_ns, seen)

    # --- what is known -----------------------------------------------------------------------------------------
    def _keep(self, pid: int, start: int, parent: int) -> None:
        if pid in self._known or len(self._known) < MOST_PROCESSES:
            self._known[pid] = _Known(start, parent)

    def _end(self, pid: int, at_ns: int) -> Iterator[Telling]:
        self._ending.pop(pid, None)
        if self._known.pop(pid, None) is not None:
            yield Exited(at_ns, pid)

    def _ticks(self, at_ns: int) -> int:
        return (at_ns - self._boot_ns) // self._tick_ns

"""What comes from a sensor, as facts: lines, records, facts."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from telemetry.engine.collector.facts import Fact as KernelFact
from telemetry.engine.collector.facts import Found, Told
from telemetry.engine.collector.proc import Proc
from telemetry.engine.collector.records import falco, tetragon
from telemetry.engine.collector.records.assembling import Assembler
from telemetry.engine.collector.records.lines import Lines
from telemetry.engine.collector.records.telling import Form, Loss, Program, Record, Unreadable
from telemetry.engine.collector.records.translating import LIVE_NS, Translator
from telemetry.engine.collector.watch import MOST_PROCESSES

Fact: TypeAlias = KernelFact | Found
FIRST_PID: Final = 1


class Whole:
    """A form whose lines each are whole."""

    def __init__(self, read: Callable[[bytes], Iterable[Record]]) -> None:
        self.read = read

    def idle(self) -> Iterable[Record]:
        return ()


_FORMS: Final[dict[str, Callable[[], Form]]] = {
    "auditd": Assembler, "tetragon": lambda: Whole(tetragon.read), "falco": lambda: Whole(falco.read),
}  # fmt: skip


class Reader:
    """Make facts of what a sensor writes, in pieces of any size.

    `may_replay`: the first record decides whether these are old ones, of which `/proc` says nothing and whose starts
    count from 1970: then `is_replay`. `boot_ns`: when the node started; `tick_ns`: the unit of starts.
    """

    def __init__(self, form: str, proc: Proc, *, boot_ns: int, tick_ns: int, may_replay: bool) -> None:
        self._form, self._lines = _FORMS[form](), Lines()
        self._proc, self._boot_ns, self._tick_ns, self._may_replay = proc, boot_ns, tick_ns, may_replay
        self._translator: Translator | None = None
        self._events = self._lost = 0
        self._early = list[Program]()
        self.is_replay = False
        self.unreadable = 0

    def feed(self, data: bytes, now_ns: int) -> Iterator[Fact]:
        """Yield what some bytes complete, and then how much was read so far."""
        for line in self._lines.feed(data):
            yield from self._read(line, now_ns)
        yield from self._keep_house(now_ns)
        yield self.told()

    def idle(self, now_ns: int) -> Iterator[Fact]:
        """Yield what waits: nothing came for a second or more."""
        for record in self._form.idle():
            yield from self._translate(record, now_ns)
        if not self.is_replay:
            if self._translator is None:
                yield from self._begin(now_ns, now_ns)
            elif self._translator:
                yield from self._translator.settle(now_ns)
        yield from self._keep_house(now_ns)
        yield self.told()

    def finish(self, now_ns: int) -> Iterator[Fact]:
        """Yield what there is still: nothing comes any more."""
        if rest := self._lines.rest():
            yield from self._read(rest, now_ns)
        for record in self._form.idle():
            yield from self._translate(record, now_ns)
        if self._translator:
            yield from self._translator.settle(2**63)
        yield self.told()

    def told(self) -> Told:
        """Return what was read so far, as totals."""
        it = self._translator
        lost = self._lost + self.unreadable + self._lines.too_long + (it.unknown if it else 0)
        return Told("records", self._events, lost, it.orphans if it else 0, it.programs if it else 0, 0, 0, 0)

    def _read(self, line: bytes, now_ns: int) -> Iterator[Fact]:
        try:
            for record in self._form.read(line):
                yield from self._translate(record, now_ns)
        except Unreadable:
            self.unreadable += 1

    def _translate(self, record: Record, now_ns: int) -> Iterator[Fact]:
        if isinstance(record, Loss):
            self._lost += record.number
            return
        self._events += 1
        if isinstance(record, Program) and not record.is_news:
            # What was there before may be told with any time. It is met when the next news is.
            if len(self._early) < MOST_PROCESSES:
                self._early.append(record)
            return
        if self._translator is None:
            yield from self._begin(record.at_ns, now_ns)
        if self._translator:
            for each in self._early:
                yield from self._translator.take(each._replace(at_ns=record.at_ns), now_ns)
            self._early = []
            yield from self._translator.take(record, now_ns)

    def _begin(self, at_ns: int, now_ns: int) -> Iterator[Fact]:
        self.is_replay = self._may_replay and abs(now_ns - at_ns) > LIVE_NS
        if self.is_replay:
            self._translator = Translator(None, boot_ns=0, tick_ns=self._tick_ns)
        else:
            # Where `/proc` hides what others run (hidepid), that one is not there says nothing.
            proc = self._proc if FIRST_PID in self._proc.pids() else None
            self._translator = Translator(proc, boot_ns=self._boot_ns, tick_ns=self._tick_ns)
        yield from self._translator.look(now_ns)

    def _keep_house(self, now_ns: int) -> Iterator[Fact]:
        if self._translator:
            yield from self._translator.sweep(now_ns)

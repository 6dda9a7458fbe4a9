"""Collecting from the records of a sensor that the site has already: no helper, and no rights that are lent."""

import argparse
import os
import pwd
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from portal.cli.collect.config import Config
from portal.cli.collect.privileges import give_up
from portal.cli.collect.running import (
    GRACE_S,
    MINUTE_S,
    TICK_S,
    Put,
    Run,
    boot_s,
    print_batch,
    sending,
)
from portal.cli.collect.source import Source
from telemetry.engine.collector.facts import Executed, Exited, Fact, Forked, Found, Snapshot, Told
from telemetry.engine.collector.helper import is_there
from telemetry.engine.collector.proc import Proc
from telemetry.engine.collector.records.reader import Reader
from telemetry.engine.collector.records.telling import SECOND_NS
from telemetry.engine.collector.watch import Watch

IDLE_S = 1.0
KILL_FILE_S = 1.0

MakeWatch = Callable[[float, float], Watch]


def collect_records(
    config: Config, options: argparse.Namespace, form: str, user: pwd.struct_passwd | None, token: str,
    make_watch: MakeWatch,
) -> int:  # fmt: skip
    """Read records until they end or it is told to stop: 0, or 1 where a sensor ended by itself. Errors: `Unusable`."""
    path = options.records_from or ("" if options.records else config.records_from)
    source = Source(path, follow=not options.dry_run)
    give_up(user)
    proc = Proc(markers=[name.encode() for name, _ in config.markers])
    reader = Reader(
        form, proc, boot_ns=int(boot_s() * 1e9), tick_ns=SECOND_NS // os.sysconf("SC_CLK_TCK"),
        may_replay=options.dry_run,
    )  # fmt: skip
    if options.dry_run:
        run = RecordsRun(config, make_watch, lambda batch: print_batch(batch, as_json=options.json), reader)
        return run.read(source, options.seconds)
    with sending(config, token) as way:
        run = RecordsRun(
            config, make_watch, way.put, reader, kill_file=Path(config.kill_file), lost=way.spool.take_lost,
            clock_ahead=lambda: way.sender.clock_ahead_s,
        )  # fmt: skip
        return run.read(source, options.seconds)


class RecordsRun(Run):
    """A run whose minutes are those that the records tell of; where none come, those of the clock."""

    def __init__(
        self, config: Config, make_watch: MakeWatch, put: Put, reader: Reader, *, kill_file: Path | None = None,
        lost: Callable[[], int] = lambda: 0, clock_ahead: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        super().__init__(config, make_watch(time.time(), boot_s()), put, lost=lost, clock_ahead=clock_ahead)
        self._make_watch, self._reader, self._kill_file = make_watch, reader, kill_file
        self._newest_s = 0.0
        self._unreadable_told = 0

    def read(self, source: Source, seconds: float | None) -> int:
        """Take records until told to stop, or for so long, or until they end."""
        self._source = source
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # auditd passes on what it is told itself
        return self.follow(0, seconds)

    def _take(self, _: int, until_s: float) -> int:
        self._feed([self._reader.told()])
        heard_s = looked_s = time.monotonic()
        while (left_s := self._left(until_s)) > 0:
            data = self._source.read(min(TICK_S, left_s))
            now_ns, now_s = time.time_ns(), time.monotonic()
            if data is None:
                self._feed(self._reader.finish(now_ns))
                self._tell_unreadable()
                print("The records ended.", file=sys.stderr, flush=True)
                return 0 if self._is_stopped or not self._kill_file else 1
            if data:
                heard_s = now_s
                self._feed(self._reader.feed(data, now_ns))
            elif now_s - heard_s >= IDLE_S:
                self._feed(self._reader.idle(now_ns))
            if now_s - heard_s >= GRACE_S and not self._reader.is_replay:
                self._advance(time.time())
            if self._kill_file and now_s - looked_s >= KILL_FILE_S:
                looked_s = now_s
                if is_there(self._kill_file):
                    print("The kill file is there: collecting ends.", file=sys.stderr, flush=True)
                    return 0
        self._feed(self._reader.finish(time.time_ns()))
        return 0

    def _feed(self, facts: Iterable[Fact | Found]) -> bool:
        return super()._feed(self._in_time(facts))

    def _in_time(self, facts: Iterable[Fact | Found]) -> Iterator[Fact | Found]:
        """Yield facts once the minutes before theirs are closed; what comes late counts for the minute that is open."""
        for fact in facts:
            if isinstance(fact, Executed | Exited | Forked | Found | Snapshot):
                at_s = fact.at_ns / SECOND_NS
                if not self._newest_s:
                    self._begin(at_s)
                if at_s > self._newest_s:
                    self._newest_s = at_s
                    self._advance(at_s)
                if isinstance(fact, Executed | Found) and at_s < self._closed_s:
                    fact = fact._replace(at_ns=self._closed_s * SECOND_NS)
            elif isinstance(fact, Told) and self._reader.unreadable and not self._unreadable_told:
                self._tell_unreadable()
            yield fact

    def _begin(self, at_s: float) -> None:
        """Begin with the first record, which may be older than we are."""
        self._newest_s, self._closed_s = at_s, int(at_s) // MINUTE_S * MINUTE_S
        boot = 0.0 if self._reader.is_replay else boot_s()
        self._watch = self._make_watch(min(at_s, time.time()), boot)
        self._watch.take(self._reader.told())

    def _advance(self, now_s: float) -> None:
        if now_s >= self._closed_s + MINUTE_S + GRACE_S:
            self._close(int(now_s - GRACE_S) // MINUTE_S * MINUTE_S, now_s)

    def _end_s(self) -> float:
        return int(self._newest_s) + 1.0 if self._reader.is_replay else time.time()

    def _tell_unreadable(self) -> None:
        """Say how many lines could not be read: the first time, and at the end."""
        if self._reader.unreadable > self._unreadable_told:
            self._unreadable_told = self._reader.unreadable
            print(f"Lines that could not be read: {self._unreadable_told}.", file=sys.stderr, flush=True)

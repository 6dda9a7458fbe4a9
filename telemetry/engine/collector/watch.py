"""What a node's processes come to: sessions, counts a minute, submissions, loops, and how much of all was seen.

Command lines come in, and are forgotten as soon as they are counted: what leaves are words of closed lists, numbers,
times and login names of sessions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from principals.engine.recognition import Signature
from telemetry.engine.activity import ALL, CONNECTION, measures_of
from telemetry.engine.collector.experiments import ExperimentLoop, Experiments
from telemetry.engine.collector.facts import Executed, Exited, Fact, Forked, Found, Key, Seen, Sighting, Snapshot, Told
from telemetry.engine.collector.logins import Logins, SshDay
from telemetry.engine.collector.minutes import Minute, Minutes
from telemetry.engine.collector.polling import Polling, PollingLoop
from telemetry.engine.collector.processes import LOGIN, UNKNOWN, Process, Processes, Where
from telemetry.engine.collector.sessions import Session, Sessions, id_of
from telemetry.engine.commands import Command, own_command, own_command_by_name, traits

MOST_PROCESSES: Final = 100_000  # that are known at a time
MOST_EVENTS: Final = 10_000  # submissions, and loops, that wait to leave
SLACK_TICKS: Final = 2  # between what an event and what `/proc` says of a start

_NOTHING: Final = Told("events", 0, 0, 0, 0, 0, 0, 0)
_T = TypeVar("_T")


class Submission(NamedTuple):
    """Work that a session gave to the scheduler."""

    session: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Health:
    """How much was seen, and what that cost: sums of a batch, but for `memory_bytes`, `processes` and `clock_ahead_s`.

    `lost` were never heard of, or were over a limit; of `argv_missed` programs the words were gone; `sampled_share` of
    all programs were looked at, 1 where there were not too many; `clock_ahead_s`: of the node's clock to the portal's.
    """

    events: int = 0
    lost: int = 0
    argv_missed: int = 0
    vanished: int = 0
    sampled_share: float = 1.0
    cpu_s: float = 0.0
    memory_bytes: int = 0
    processes: int = 0
    clock_ahead_s: int = 0


@dataclass(frozen=True, slots=True)
class Parts:
    """What leaves of a stretch of time."""

    from_s: float
    to_s: float
    health: Health
    sessions: Sequence[Session] = ()
    minutes: Sequence[Minute] = ()
    submissions: Sequence[Submission] = ()
    polling: Sequence[PollingLoop] = ()
    loops: Sequence[ExperimentLoop] = ()
    ssh: Sequence[SshDay] = ()


class Watch:
    """Make of facts, in the order of their times, what leaves the node.

    `with_people`: a study of people is on. `apart_s`: what the site asks for between two queries of the scheduler.
    `key`: makes digests this node's own. `boot_s`, `ticks_s`: when the node started, and the unit of starts.
    `base`, `markers`: as `Processes` has them. `jobs_alone`: of what belongs to no session nothing is counted that is
    in no job and did not come by SSH: on a compute node that is the node's own. `logins`: who came by SSH, where that
    is listened to.
    """

    def __init__(
        self, *, began_s: float, boot_s: float, ticks_s: int, key: bytes, apart_s: float, with_people: bool = False,
        harnesses: Sequence[Signature] | None = None, base: Where = LOGIN, markers: Sequence[str] = (),
        jobs_alone: bool = False, logins: Logins | None = None,
    ) -> None:  # fmt: skip
        self._processes = Processes(harnesses, slack=SLACK_TICKS, base=base, markers=markers, logins=logins)
        self._base, self._jobs_alone, self._logins = base, jobs_alone, logins
        self._sessions = Sessions(with_people=with_people, started=lambda root: boot_s + root.start / ticks_s)
        self._minutes = Minutes()
        self._polling, self._experiments = Polling(apart_s=apart_s, key=key), Experiments()
        self._submissions: list[Submission] = []
        self._loops: list[ExperimentLoop] = []
        self._running: dict[int, int] = {}  # a digest of what each runs, for this process of ours alone
        self._told, self._before, self._from_s = _NOTHING, _NOTHING, began_s
        self._over = self._missed = 0
        self._take: dict[type, Callable[..., None]] = {
            Forked: self._fork, Executed: self._execute, Exited: self._exit, Snapshot: self._look, Told: self._hear,
            Found: self._find,
        }  # fmt: skip

    @property
    def mode(self) -> str:
        """Whether all that starts is heard of, or what is there a few times a second, or what a sensor records."""
        return self._told.mode

    def take(self, fact: Fact | Found) -> None:
        """Take a fact; those that are none of ours are passed over."""
        if take := self._take.get(type(fact)):
            take(fact)

    def close(self, upto_s: float, now_s: float) -> Parts:
        """Return what there is of the minutes that began before a time, and the loops that are over by now: with
        infinity all of them. Nothing of it is returned again."""
        living = frozenset(each.label.root for each in self._processes if each.label.root)
        news, over = self._sessions.leave(living, now_s)
        for root in over:
            self._experiments.forget(root)
            if self._logins:
                self._logins.forget(root)
        # One that was heard of late happened, for the portal, when its batch begins.
        due = [each._replace(at_s=max(each.at_s, self._from_s)) for each in self._submissions if each.at_s < upto_s]
        parts = Parts(
            self._from_s, max(upto_s, self._from_s), self._health(), news, self._minutes.close(upto_s),
            due, self._polling.settle(now_s), self._loops,
            list(self._logins.days(upto_s)) if self._logins else (),
        )  # fmt: skip
        self._submissions = [each for each in self._submissions if each.at_s >= upto_s]
        self._from_s, self._loops = parts.to_s, []
        self._before, self._over, self._missed = self._told, 0, 0
        return parts

    def _health(self) -> Health:
        now, before = self._told, self._before
        execs, left_out = now.execs - before.execs, now.left_out - before.left_out
        return Health(
            now.events - before.events, now.lost - before.lost + self._over, self._missed,
            now.vanished - before.vanished, round(1 - left_out / execs, 4) if execs > 0 else 1.0,
            (now.cpu_ns - before.cpu_ns) / 1e9, now.memory_bytes, len(self._processes),
        )  # fmt: skip

    def _hear(self, told: Told) -> None:
        self._told = told

    def _fork(self, fact: Forked) -> None:
        self._end(self._processes.get(fact.key.pid), fact.at_ns)
        if self._has_room(fact.key.pid):
            self._processes.fork(fact.parent, fact.key)

    def _exit(self, fact: Exited) -> None:
        self._running.pop(fact.pid, None)
        if self._logins:
            self._logins.end(fact.pid, fact.at_ns / 1e9)
        self._end(self._processes.exit(fact.pid), fact.at_ns)

    def _look(self, fact: Snapshot) -> None:
        for old in self._processes.snapshot(each.seen() for each in fact.sightings[:MOST_PROCESSES]):
            self._end(old, fact.at_ns)
            if self._logins:
                self._logins.end(old.key.pid, fact.at_ns / 1e9)
        for process in self._processes:
            if process.label.root == process.key:
                self._sessions.begin(process, fact.at_ns / 1e9)
        self._running = {pid: what for pid, what in self._running.items() if self._processes.get(pid)}

    def _find(self, fact: Found) -> None:
        known = self._processes.get(fact.sighting.pid)
        if self._has_room(fact.sighting.pid):
            process = self._processes.execute(fact.sighting.seen())
            if known is not None and known.key != process.key:
                self._end(known, fact.at_ns)
            if process.label.root == process.key:
                self._sessions.begin(process, fact.at_ns / 1e9)

    def _execute(self, fact: Executed) -> None:
        at_s, known = fact.at_ns / 1e9, self._processes.get(fact.pid)
        if fact.sighting is None:
            self._missed += not fact.left_out
            self._count(known, at_s, (ALL,))
            return
        if not self._has_room(fact.pid):
            return
        seen = fact.sighting.seen()
        process = self._processes.execute(seen)
        if known is not None and known.key != process.key:
            self._end(known, fact.at_ns)
        self._missed += not seen.argv
        if process.where.root == process.key and (known is None or known.where is not process.where):
            self._connect(process, seen, at_s)
        # What a session begins with is no command of it, unless that is all that is known of it.
        if process.label.root == process.key and not process.label.evidence:
            self._sessions.note(process, at_s)
        elif not self._is_running(fact.sighting):
            self._command(process, seen, _command_of(fact.sighting, seen), at_s)

    def _connect(self, process: Process, seen: Seen, at_s: float) -> None:
        """Take what somebody came for by SSH."""
        if not seen.tty:
            self._count(process, at_s, (CONNECTION,))
        if self._logins and process.label.driver == "unknown":
            self._logins.count(process.where.servers, at_s)

    def _is_running(self, sighting: Sighting) -> bool:
        """Say whether a process was seen before with what it runs: it was looked at only when it ran the next program
        already. Of the first, then, the words are gone. Records have the words of each."""
        if not sighting.argv or self.mode == "records":
            return False
        digest = hash((sighting.start, sighting.exe, sighting.argv))
        if self._running.get(sighting.pid) == digest:
            self._missed += 1
            return True
        self._running[sighting.pid] = digest
        return False

    def _command(self, process: Process, seen: Seen, command: Command | None, at_s: float) -> None:
        session = self._count(process, at_s, measures_of([command] if command else []))
        if session is None or command is None:
            return
        if traits.QUERY in command.traits:
            above = self._processes.get(seen.parent)
            self._polling.query(above.key if above else Key(seen.parent, 0), seen.argv, session.root, at_s)
        if traits.SUBMISSION in command.traits:
            self._keep(self._submissions, Submission(id_of(session.root), at_s))
        if loop := self._experiments.command(session.root, command, at_s):
            self._keep(self._loops, loop)

    def _count(self, process: Process | None, at_s: float, measures: Iterable[str]) -> Session | None:
        session = self._sessions.note(process, at_s) if process else None
        label, where = (process.label, process.where) if process else (UNKNOWN, self._base)
        if self._jobs_alone and session is None and where.place == self._base.place:
            return None
        name, place = (id_of(session.root), session.where.place) if session else ("", where.place)
        self._minutes.add(at_s, name, label.driver, place, measures)
        return session

    def _keep(self, kept: list[_T], each: _T) -> None:
        if len(kept) < MOST_EVENTS:
            kept.append(each)
        else:
            self._over += 1

    def _end(self, process: Process | None, at_ns: int) -> None:
        if process is not None:
            self._sessions.end(process.key, at_ns / 1e9)

    def _has_room(self, pid: int) -> bool:
        if len(self._processes) < MOST_PROCESSES or self._processes.get(pid):
            return True
        self._over += 1
        return False


def _command_of(sighting: Sighting, seen: Seen) -> Command | None:
    """Return what a process counts for: by its name alone where it ended before it was looked at."""
    if seen.argv:
        return own_command(seen.argv)
    return own_command_by_name(sighting.name.decode(errors="replace")) if sighting.ended else None

"""The half of the collector that may look: kernel events and `/proc` in, facts on a pipe out, and nothing else.

A process of its own, with the standard library alone. It judges nothing, opens no file for writing and no connection,
and ends when nobody reads its pipe any more, or when the kill file appears.
"""

import gc
import os
import select
import signal
import socket
import struct
import sys
import time
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from telemetry.engine.collector.connector import ProcessEvent, drops, open_connector, parse
from telemetry.engine.collector.facts import Ending, Executed, Fact, Mode, Told
from telemetry.engine.collector.frames import encode, exited, forked
from telemetry.engine.collector.origins import job_of
from telemetry.engine.collector.proc import Only, Proc
from telemetry.engine.collector.walking import A_SECOND, Walker

EXECS_A_SECOND: Final = 4_000  # are looked at; of those beyond one in `ONE_IN`
ONE_IN: Final = 10
SNAPSHOT_EVERY_S: Final = 300.0
REPAIR_AFTER_S: Final = 30.0  # a snapshot after a loss is not sooner than that after the last
FLUSH_EVERY_S: Final = 0.25
MEASURE_EVERY_S: Final = 20.0
FLUSH_BYTES: Final = 65_536
IN_FLIGHT_NS: Final = 10_000_000  # between the time that an event has and its arrival
_ALL: Final = 20_000  # more than there is room for
_DATAGRAM: Final = 512  # six times an event; room for more costs each time
_PROBE_S: Final = 1.0


class Clock:
    """The kernel's times as wall time and as ticks since boot. The wall may be set anew: refresh it now and then."""

    def __init__(self) -> None:
        self._tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        self.refresh()

    def refresh(self) -> None:
        monotonic_ns = time.monotonic_ns()
        self._wall_ns = time.time_ns() - monotonic_ns
        self._boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - monotonic_ns

    def wall(self, at_ns: int) -> int:
        return at_ns + self._wall_ns

    def ticks(self, at_ns: int) -> int:
        return (at_ns + self._boot_ns) // self._tick_ns


class Pipe:
    """The way out: frames are gathered and written together."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._frames: list[bytes] = []
        self._size = 0

    def put(self, fact: Fact) -> None:
        self.write(encode(fact))

    def write(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._size += len(frame)
        if self._size >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        data = memoryview(b"".join(self._frames))
        self._frames, self._size = [], 0
        while data:
            data = data[os.write(self.fd, data) :]


class Budget:
    """How many programs are looked at: so many a second, beyond that some, so that a storm is seen but not followed."""

    def __init__(self, a_second: int = EXECS_A_SECOND) -> None:
        self._a_second, self._left, self._beyond, self._since_ns = a_second, a_second, 0, 0

    def take(self, now_ns: int) -> bool:
        if now_ns - self._since_ns >= 1_000_000_000:
            self._left, self._since_ns = self._a_second, now_ns
        if self._left > 0:
            self._left -= 1
            return True
        self._beyond += 1
        return self._beyond % ONE_IN == 0


class Order:
    """Frames that came by two ways, in the order of their times once none can come between any more."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, bytes]] = []

    def add(self, at_ns: int, frame: bytes) -> None:
        self._waiting.append((at_ns, frame))

    def release(self, until_ns: int) -> list[bytes]:
        self._waiting.sort(key=itemgetter(0))
        count = bisect_right(self._waiting, until_ns, key=itemgetter(0))
        due, self._waiting = self._waiting[:count], self._waiting[count:]
        return [frame for _, frame in due]


class Connectors(NamedTuple):
    """Two ways for events: programs that start are waited for; the rest is read now and then, many at a time."""

    starts: socket.socket
    rest: socket.socket

    def drops(self) -> int:
        return drops(self.starts) + drops(self.rest)


class Helper:
    """One run: facts of either mode, what it says of itself, and snapshots in between."""

    def __init__(self, pipe: Pipe, kill_file: Path | None, proc: Proc) -> None:
        self._pipe, self._kill_file = pipe, kill_file
        self._proc, self._clock, self._budget, self._order = proc, Clock(), Budget(), Order()
        self._walker = Walker(self._proc)
        self._events = self._execs = self._left_out = self._lost = self._lost_before = 0
        self._looked_s = self._said_s = self._flushed_s = self._measured_s = 0.0
        self._memory_bytes = 0

    def by_events(self, connectors: Connectors) -> None:
        """Follow the kernel's events until the kill file is there. Errors: `BrokenPipeError` once nobody reads."""
        while self._keep_house("events", connectors):
            # Who runs what is looked at at once; what else there is waits a moment, for being woken is what costs.
            self._hear(connectors.starts, 0)

    def by_walking(self) -> None:
        """Look at `/proc` some times a second instead."""
        poll = select.poll()
        poll.register(self._pipe.fd, 0)
        while self._keep_house("walk"):
            began_s = time.monotonic()
            for fact in self._walker.step(time.time_ns()):
                self._events += 1
                self._execs += isinstance(fact, Executed)
                self._pipe.put(fact)
            self._pipe.flush()
            if poll.poll(max(0.0, 1 / A_SECOND - (time.monotonic() - began_s)) * 1000):
                return

    def _hear(self, connector: socket.socket, flags: int) -> bool:
        """Take one event; say whether there may be more."""
        try:
            datagram = connector.recv(_DATAGRAM, flags)
        except BlockingIOError:
            return False
        except OSError:  # there was no room for some: how many, `drops` tells
            return True
        for event in parse(datagram):
            self._tell(event)
        return True

    def _drain(self, connector: socket.socket) -> None:
        for _ in range(_ALL):
            if not self._hear(connector, socket.MSG_DONTWAIT):
                return

    def _tell(self, event: ProcessEvent) -> None:
        what, pid, parent, heard_ns = event
        at_ns = self._clock.wall(heard_ns)
        self._events += 1
        if what == "exec":
            self._execs += 1
            is_seen = self._budget.take(heard_ns)
            self._left_out += not is_seen
            frame = encode(Executed(at_ns, pid, self._proc.look(pid) if is_seen else None, not is_seen))
        elif what == "fork":
            frame = forked(at_ns, parent, pid, self._clock.ticks(heard_ns))
        elif what == "exit":
            frame = exited(at_ns, pid)
        else:
            return
        self._order.add(heard_ns, frame)

    def _keep_house(self, mode: Mode, connectors: Connectors | None = None) -> bool:
        """Do what is due besides; say whether to go on."""
        now_s = time.monotonic()
        if connectors and now_s - self._flushed_s >= FLUSH_EVERY_S:
            until_ns = time.monotonic_ns() - IN_FLIGHT_NS
            self._drain(connectors.starts)
            self._drain(connectors.rest)
            for frame in self._order.release(until_ns):
                self._pipe.write(frame)
        lost = self._lost - self._lost_before
        if not self._looked_s or now_s - self._looked_s >= (REPAIR_AFTER_S if lost else SNAPSHOT_EVERY_S):
            self._looked_s, self._lost_before = now_s, self._lost
            self._pipe.put(self._walker.snapshot(time.time_ns()))
        if now_s - self._said_s >= 1 and not self._say(now_s, mode, connectors):
            return False
        if now_s - self._flushed_s >= FLUSH_EVERY_S:
            self._flushed_s = now_s
            self._pipe.flush()
        return True

    def _say(self, now_s: float, mode: Mode, connectors: Connectors | None) -> bool:
        self._said_s = now_s
        self._clock.refresh()
        self._lost = connectors.drops() if connectors else 0
        if now_s - self._measured_s >= MEASURE_EVERY_S:
            self._measured_s, self._memory_bytes = now_s, peak_memory()
        self._pipe.put(
            Told(
                mode, self._events, self._lost, self._proc.vanished, self._execs, self._left_out,
                time.process_time_ns(), self._memory_bytes,
            )
        )  # fmt: skip
        if not (self._kill_file and is_there(self._kill_file)):
            return True
        self._pipe.put(Ending())
        self._pipe.flush()
        return False


def is_there(path: Path) -> bool:
    """Say whether a file is there, as far as we may see."""
    with suppress(OSError):
        return path.exists()
    return False


def peak_memory() -> int:
    """Return the most memory that this process ever held, in bytes: proc_pid_status(5), VmHWM."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_bytes().splitlines():
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _only(text: str) -> Only:
    uid, job = map(int, text.split(":"))
    own = 0
    with suppress(OSError):
        own = job_of(Path("/proc/self/cgroup").read_bytes())
    return Only(uid, job, own == job)


def connect() -> Connectors | None:
    """Open the kernel's events; None where they are not allowed, or do not come, as in containers."""
    with ExitStack() as stack:
        try:
            starts = stack.enter_context(open_connector(("exec",)))
            rest = stack.enter_context(open_connector(("fork", "exit")))
        except OSError:
            return None
        if not _hears(rest):
            return None
        rest.setblocking(False)
        starts.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(FLUSH_EVERY_S * 1e6)))
        stack.pop_all()
        return Connectors(starts, rest)


def _hears(connector: socket.socket) -> bool:
    """Say whether the start of a process of our own is told, by the number that we know it by."""
    connector.settimeout(_PROBE_S)
    until_s = time.monotonic() + _PROBE_S
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    try:
        while time.monotonic() < until_s:
            events = parse(connector.recv(_DATAGRAM))
            if any(each.pid == child for each in events):
                return True
    except OSError:
        pass
    return False


def main(arguments: Sequence[str]) -> int:
    """Run: the pipe's number, `events` or `walk`, the kill file or "", names of variables to look for with a blank
    between, and UID:JOB where nothing else is to be looked at."""
    fd, mode, kill_file, markers, only = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who reads the pipe decides; we end with it
    if only:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a job that ends tells all of its processes
    gc.disable()  # facts make no circles
    proc = Proc(markers=[name.encode() for name in markers.split()], only=_only(only) if only else None)
    helper = Helper(Pipe(int(fd)), Path(kill_file) if kill_file else None, proc)
    connectors = connect() if mode == "events" else None
    try:
        if connectors:
            helper.by_events(connectors)
        else:
            helper.by_walking()
    except BrokenPipeError:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

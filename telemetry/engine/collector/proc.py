"""What `/proc` says of a process: proc(5), proc_pid_stat(5).

A process may end between any two steps, and its number may be given out anew. So its folder is opened once, and all is
read through that: the kernel then answers for this process or not at all.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from telemetry.engine.collector.facts import Sighting
from telemetry.engine.collector.origins import NO_JOB, NOT_ASKED, UNTOLD, job_of, marker_of

ARGV_BYTES: Final = 32_768  # of a command line that may have two million
_STAT_BYTES: Final = 4096
_EXE_BYTES: Final = 4096
_CGROUP_BYTES: Final = 8192
_ENVIRON_BYTES: Final = 131_072
_MOST_ORIGINS: Final = 20_000
_EXITING: Final = 0x4  # linux/sched.h, PF_EXITING
_PIECE: Final = 2048  # most command lines are shorter, and room for a longer one costs each time
_PROC: Final = Path("/proc")


class Stat(NamedTuple):
    """What we need of a `stat` line: the name, whether the process is ending or ended and waits for its parent, the
    parent, the terminal's number, the start in clock ticks since boot, and whether it leads others: a session, a group
    without a terminal, or what init took over. These are few, and the rest are what their leaders are."""

    name: bytes
    ended: bool
    parent: int
    tty: int
    start: int
    leads: bool = False


class Only(NamedTuple):
    """Whose processes alone are looked at: one user's, in one job as far as control groups tell. `is_strict`: they do
    tell, so one that is said to be in no job is none of it."""

    uid: int
    job: int
    is_strict: bool


def read_stat(line: bytes) -> Stat | None:
    """Read a `stat` line; None for one that is none. The name in it may hold anything, also brackets."""
    end = line.rfind(b")")
    fields = line[end + 1 :].split(None, 20)
    try:
        begin = line.index(b"(")
        name, number = line[begin + 1 : end], line[: begin - 1]
        ended = fields[0] in b"ZXx" or bool(int(fields[6]) & _EXITING)
        parent, tty = int(fields[1]), int(fields[4])
        leads = fields[3] == number or (fields[2] == number and not tty) or parent == 1
        return Stat(name, ended, parent, tty, int(fields[19]), leads)
    except (IndexError, ValueError):
        return None


class Proc:
    """A `/proc`, looked at process by process or as a whole.

    `markers`: names of variables that are looked for in the environments of those that lead others; without any, no
    environment is opened.
    """

    def __init__(self, root: Path = _PROC, *, markers: Sequence[bytes] = (), only: Only | None = None) -> None:
        self._root = str(root)
        self._markers, self.only = tuple(markers), only
        self._origins: dict[int, tuple[int, int, int, int]] = {}  # by number: start, what it runs, job, marker
        self.vanished = 0  # how many ended while they were looked at

    def pids(self) -> list[int]:
        """Return the numbers of all processes."""
        names = os.listdir(self._root)  # noqa: PTH208 - some times a second, of a thousand names
        return [int(name) for name in names if name.isdecimal() and name.isascii()]

    def look(self, pid: int) -> Sighting | None:
        """Return a process as it is now; None where it is gone, counted in `vanished`, or is not to be looked at."""
        try:
            folder = os.open(f"{self._root}/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            self.vanished += 1
            return None
        try:
            return self._look(pid, folder) if self.only is None or _is_of(folder, self.only) else None
        finally:
            os.close(folder)

    def walk(self) -> Iterator[Sighting]:
        """Yield all processes, those that end meanwhile left out."""
        for pid in self.pids():
            if seen := self.look(pid):
                yield seen

    def _look(self, pid: int, folder: int) -> Sighting | None:
        try:
            # The command line first: of a short process it is what is missed.
            argv = _read(folder, "cmdline", ARGV_BYTES)
            stat = read_stat(_read(folder, "stat", _STAT_BYTES))
        except OSError:
            stat = None
        if stat is None:
            self.vanished += 1
            return None
        try:
            exe = os.readlink(b"exe", dir_fd=folder)[:_EXE_BYTES]
        except OSError:  # a process of the kernel, one that just ended, or somebody else's
            exe = b""
        uid = os.fstat(folder).st_uid
        job, marker = self._origin(pid, folder, stat.start, hash((exe, argv))) if stat.leads else (NOT_ASKED, 0)
        return Sighting(pid, stat.start, stat.parent, uid, stat.tty, stat.ended, stat.name, exe, argv, job, marker)

    def _origin(self, pid: int, folder: int, start: int, runs: int) -> tuple[int, int]:
        """Return the job and the marker of a process that leads others: read once for each program that it runs."""
        known = self._origins.get(pid)
        if known is not None and known[:2] == (start, runs):
            return known[2:]
        job, marker = job_of(_read_if(folder, "cgroup", _CGROUP_BYTES)), 0
        if self._markers:
            marker = marker_of(_read_if(folder, "environ", _ENVIRON_BYTES), self._markers)
        if len(self._origins) >= _MOST_ORIGINS:
            self._origins.clear()
        self._origins[pid] = start, runs, job, marker
        return job, marker


def _is_of(folder: int, only: Only) -> bool:
    if os.fstat(folder).st_uid != only.uid:
        return False
    job = job_of(_read_if(folder, "cgroup", _CGROUP_BYTES))
    return job in {only.job, UNTOLD} or (job == NO_JOB and not only.is_strict)


def _read_if(folder: int, name: str, limit: int) -> bytes:
    """Return a file; nothing where its process just ended, is not ours to read, or the kernel has none such."""
    try:
        return _read(folder, name, limit)
    except OSError:
        return b""


def _read(folder: int, name: str, limit: int) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        data = os.read(file, _PIECE)
        return data + os.read(file, limit - _PIECE) if len(data) == _PIECE < limit else data
    finally:
        os.close(file)

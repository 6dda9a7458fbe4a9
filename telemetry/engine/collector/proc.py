"""What `/proc` says of a process: proc(5), proc_pid_stat(5).

A process may end between any two steps, and its number may be given out anew. So its folder is opened once, and all is
read through that: the kernel then answers for this process or not at all.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from telemetry.engine.collector.facts import Sighting

ARGV_BYTES: Final = 32_768  # of a command line that may have two million
_STAT_BYTES: Final = 4096
_EXE_BYTES: Final = 4096
_EXITING: Final = 0x4  # linux/sched.h, PF_EXITING
_PIECE: Final = 2048  # most command lines are shorter, and room for a longer one costs each time
_PROC: Final = Path("/proc")


class Stat(NamedTuple):
    """What we need of a `stat` line: the name, whether the process is ending or ended and waits for its parent, the
    parent, the terminal's number, the start in clock ticks since boot."""

    name: bytes
    ended: bool
    parent: int
    tty: int
    start: int


def read_stat(line: bytes) -> Stat | None:
    """Read a `stat` line; None for one that is none. The name in it may hold anything, also brackets."""
    end = line.rfind(b")")
    fields = line[end + 1 :].split(None, 20)
    try:
        name = line[line.index(b"(") + 1 : end]
        ended = fields[0] in b"ZXx" or bool(int(fields[6]) & _EXITING)
        return Stat(name, ended, int(fields[1]), int(fields[4]), int(fields[19]))
    except (IndexError, ValueError):
        return None


class Proc:
    """A `/proc`, looked at process by process or as a whole."""

    def __init__(self, root: Path = _PROC) -> None:
        self._root = str(root)
        self.vanished = 0  # how many ended while they were looked at

    def pids(self) -> list[int]:
        """Return the numbers of all processes."""
        names = os.listdir(self._root)  # noqa: PTH208 - some times a second, of a thousand names
        return [int(name) for name in names if name.isdecimal() and name.isascii()]

    def look(self, pid: int) -> Sighting | None:
        """Return a process as it is now; None where it is gone, counted in `vanished`."""
        try:
            folder = os.open(f"{self._root}/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            self.vanished += 1
            return None
        try:
            return self._look(pid, folder)
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
        return Sighting(pid, stat.start, stat.parent, uid, stat.tty, stat.ended, stat.name, exe, argv)


def _read(folder: int, name: str, limit: int) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        data = os.read(file, _PIECE)
        return data + os.read(file, limit - _PIECE) if len(data) == _PIECE < limit else data
    finally:
        os.close(file)

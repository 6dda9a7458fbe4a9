"""Facts about processes, as they come from the kernel: nothing is judged yet.

Times are nanoseconds since 1970; starts of processes are clock ticks since boot, as in proc_pid_stat(5).
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from telemetry.engine.collector.origins import NOT_ASKED

MOST_WORDS: Final = 256  # of a command line; what stands behind does not change what it is
_DELETED: Final = " (deleted)"  # proc_pid_exe(5): a program that was replaced while it runs

Mode: TypeAlias = Literal["events", "walk", "records"]


class Key(NamedTuple):
    """A process for good: its number and its start, in whatever unit the node counts starts."""

    pid: int
    start: int


class Seen(NamedTuple):
    """A process as `/proc` shows it. `tty`: the device's number, 0 without.

    Of those that lead others also `job`, as `origins` tells it, and `marker`: the place of the first agent's variable
    that it has, 0 for none.
    """

    key: Key
    parent: int
    uid: int
    tty: int
    argv: Sequence[str]
    exe: str
    job: int = NOT_ASKED
    marker: int = 0


class Sighting(NamedTuple):
    """A process as `/proc` shows it, its words still bytes. `ended`: all but its name is gone already."""

    pid: int
    start: int
    parent: int
    uid: int
    tty: int
    ended: bool
    name: bytes
    exe: bytes
    argv: bytes
    job: int = NOT_ASKED
    marker: int = 0

    def seen(self) -> Seen:
        """Return it with its words as text; bytes that are none become U+FFFD."""
        words = self.argv.removesuffix(b"\0").split(b"\0", MOST_WORDS)[:MOST_WORDS] if self.argv else []
        argv = tuple(word.decode(errors="replace") for word in words)
        exe = self.exe.decode(errors="replace").removesuffix(_DELETED)
        return Seen(Key(self.pid, self.start), self.parent, self.uid, self.tty, argv, exe, self.job, self.marker)


class Forked(NamedTuple):
    """A process began. Its start is told by the event's time and may be off by a tick or two."""

    at_ns: int
    parent: int
    key: Key


class Executed(NamedTuple):
    """A process runs a program from now on. `sighting` is None where it was gone, or not looked at (`left_out`)."""

    at_ns: int
    pid: int
    sighting: Sighting | None
    left_out: bool = False


class Found(NamedTuple):
    """A process was there already: what it runs is no news."""

    at_ns: int
    sighting: Sighting


class Exited(NamedTuple):
    """A process ended."""

    at_ns: int
    pid: int


class Snapshot(NamedTuple):
    """All processes there were at a time."""

    at_ns: int
    sightings: tuple[Sighting, ...]


class Told(NamedTuple):
    """What whoever watches says of itself, as totals since it began.

    `execs` programs were started; of those `left_out` were not looked at, for there were too many at once.
    """

    mode: Mode
    events: int
    lost: int
    vanished: int
    execs: int
    left_out: int
    cpu_ns: int
    memory_bytes: int


class Ending(NamedTuple):
    """Whoever watches was told to stop."""


Fact: TypeAlias = Forked | Executed | Exited | Snapshot | Told | Ending

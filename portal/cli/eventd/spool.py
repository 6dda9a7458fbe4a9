"""The spool of Slurm's hooks: a file a run of a hook, in `new` as it was written, in `waiting` while no portal answers.

A file stands for its event until the portal has taken that: whatever ends this process, nothing is lost by it, and what
is sent twice changes nothing there.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from portal.cli.files import Unusable
from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.hooks import LATEST_S, MOST_BYTES, read_file
from telemetry.engine.slurm.records import EARLIEST_S

MOST_BAD = 200  # files that are kept to be looked at
HALF_S = 600.0  # a hook that has not finished its file by then never will
BLOCK_BYTES = 4096  # what a small file takes of a disk
DAY_S = 86_400.0


class Event(NamedTuple):
    """What a file says: which hook, when it ran (seconds since 1970), the values that are kept of it."""

    hook: str
    fired_s: float
    values: dict[str, str]


class Lying(NamedTuple):
    """A file of the spool, and when it was written."""

    at_s: float
    path: Path


class HookSpool:
    """A folder that hooks write to and one eventd empties."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._new, self._half, self._waiting, self._bad = (folder / name for name in ("new", "half", "waiting", "bad"))

    def open(self) -> None:
        """Make the folder ours. Errors: `Unusable` where it cannot be written to, or another eventd has it."""
        try:
            for each in (self._folder, self._new, self._half, self._waiting, self._bad):
                each.mkdir(mode=0o700, exist_ok=True)
                _refuse_others(each)
            self._locked = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self._half.iterdir():
                if path.stat().st_mtime < time.time() - HALF_S:
                    path.unlink()
        except BlockingIOError:
            raise Unusable(
                f"Another eventd uses {self._folder} [already_running]\nStop it first: one empties a spool."
            ) from None
        except OSError as error:
            raise Unusable(
                f"{self._folder} cannot be used: {error.strerror} [spool_unusable]\n"
                "Let it be a folder of SlurmUser, mode 0700, and run eventd as SlurmUser."
            ) from None

    def close(self) -> None:
        """Let another eventd have it."""
        os.close(self._locked)

    def lying(self, most: int) -> list[Path]:
        """Return the files that are there, the oldest first, and of these so many. Errors: `OSError`."""
        return [each.path for each in sorted([*_files(self._waiting), *_files(self._new)])[:most]]

    def read(self, path: Path) -> Event | None:
        """Return what a file says; None for one that is gone. Errors: `FieldError` for one that is none of a hook's."""
        try:
            opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                data, at_s = os.read(opened, MOST_BYTES + 1), os.fstat(opened).st_mtime
            finally:
                os.close(opened)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FieldError("hook_unreadable", error.strerror or "It cannot be read") from None
        if not EARLIEST_S <= at_s <= LATEST_S:  # the portal would refuse all that is sent with it
            raise FieldError("bad_time", "It was written at no time that can be")
        hook, values = read_file(data)
        return Event(hook, at_s, values)

    def remove(self, path: Path) -> None:
        """Forget an event that arrived."""
        with suppress(FileNotFoundError, IsADirectoryError):
            path.unlink()

    def set_aside(self, path: Path) -> None:
        """Keep a file that is none, or was refused, where somebody may look at it; its oldest fellows are forgotten."""
        with suppress(FileNotFoundError):
            path.rename(self._bad / path.name)
        for old in sorted(_files(self._bad))[:-MOST_BAD]:
            self.remove(old.path)

    def make_room(self, *, most_bytes: int, keep_s: float) -> int:
        """Take away from the hooks what waits, and forget what is too much or too old; return how much that was.

        Hooks look at how many files lie in `new`, and write no more where nobody takes them away.
        """
        for each in _files(self._new):
            to = self._waiting / each.path.name
            while to.exists():  # a number of a process comes again: a rename would take the place of another event
                to = to.with_name(f"{to.name}-")
            with suppress(FileNotFoundError):
                each.path.rename(to)
        waiting = sorted(_files(self._waiting))
        too_many = max(0, len(waiting) - most_bytes // BLOCK_BYTES)
        oldest_s = time.time() - keep_s
        forgotten = [each for number, each in enumerate(waiting) if number < too_many or each.at_s < oldest_s]
        for each in forgotten:
            self.remove(each.path)
        return len(forgotten)


def _refuse_others(folder: Path) -> None:
    """Refuse a folder that somebody else writes to: what lies there ends jobs at the portal."""
    if folder.stat().st_mode & 0o022:
        raise Unusable(
            f"Others can write to {folder} [spool_unsafe]\nLet it be a folder of SlurmUser, mode 0700: "
            "what lies there is taken for Slurm's word."
        )


def _files(folder: Path) -> Iterator[Lying]:
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                yield Lying(entry.stat(follow_symlinks=False).st_mtime, Path(entry.path))

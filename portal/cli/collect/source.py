"""Where lines come from that others write: standard input, a FIFO, or a file that grows."""

import errno
import os
import select
import stat
import sys
import time
from pathlib import Path

from portal.cli.files import Unusable

READ_BYTES = 1 << 18
LOOK_S = 0.25  # at a file that grows


class Source:
    """Where records come from: standard input, a FIFO, or a file that grows and may be put aside for a new one.

    With `follow` a file is read from its end on and has none; else from its beginning to its end. Errors: `Unusable`.
    """

    def __init__(self, path: str, *, follow: bool) -> None:
        self._path, self._fd, self._is_growing, self._is_fifo = path, 0, False, False
        self._is_told = False
        if path and path != "-":
            try:
                self._fd = _open(path)
            except OSError as error:
                raise Unusable(
                    f"{path} cannot be read: {error.strerror} [records_unreadable]\n"
                    "Name the file or FIFO that the sensor writes; the account of `user` has to be able to read it."
                ) from None
            self._is_fifo = _is_fifo(self._fd)
            self._is_growing = follow and not self._is_fifo
            if self._is_growing:
                os.lseek(self._fd, 0, os.SEEK_END)

    def read(self, wait_s: float) -> bytes | None:
        """Return what came: nothing where nothing did for so long, None at the end."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if not poll.poll(wait_s * 1000):
            return b""
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return b""
        if data or not (self._is_growing or self._is_fifo):
            return data or None
        if self._is_growing and self._is_another():
            # What was written to the old one meanwhile comes first.
            return os.read(self._fd, READ_BYTES) or self._begin_anew()
        time.sleep(min(wait_s, LOOK_S))  # a FIFO that nobody writes to is at its end all the time
        return b""

    def _is_another(self) -> bool:
        """Say whether the file that stands there now is another one, or was cut."""
        ours = os.fstat(self._fd)
        try:
            there = Path(self._path).stat()
        except OSError:
            return False
        is_ours = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
        return not is_ours or (not self._is_fifo and there.st_size < os.lseek(self._fd, 0, os.SEEK_CUR))

    def _begin_anew(self) -> bytes:
        """Go on with the beginning of the file that stands there now."""
        try:
            other = _open(self._path)
        except OSError as error:
            if not self._is_told:
                self._is_told = True
                print(f"{self._path} cannot be opened anew: {error.strerror}", file=sys.stderr, flush=True)
            time.sleep(LOOK_S)
            return b""
        os.close(self._fd)
        self._fd, self._is_told, self._is_fifo = other, False, _is_fifo(other)
        return b""


def _open(path: str) -> int:
    """Open what may be read: no folder. Errors: `OSError`."""
    found = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISDIR(os.fstat(found).st_mode):
        os.close(found)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return found


def _is_fifo(fd: int) -> bool:
    return stat.S_ISFIFO(os.fstat(fd).st_mode)

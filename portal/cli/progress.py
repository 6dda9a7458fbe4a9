"""How far a command has come, in one line on a terminal; nowhere else."""

import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import IO

_WIDTH = 28
_EVERY_S = 0.1


class Progress:
    """Show how much of some files was read. Silent where stderr is no terminal."""

    def __init__(self) -> None:
        self._read: dict[str, int] = {}
        self._total = 0
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._began = time.monotonic()
        self._last = 0.0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write("")

    def expect(self, files: Sequence[tuple[str, IO[bytes]]]) -> None:
        """Say which files are read from now on."""
        self._read = {name: 0 for name, _ in files}
        self._total = sum(_size(stream) for _, stream in files)
        self._began = time.monotonic()

    def note(self, name: str, offset: int) -> None:
        """Say that so many bytes of a file were read."""
        self._read[name] = offset
        now = time.monotonic()
        if now - self._last >= _EVERY_S:
            self._last = now
            self._write(self._line(sum(self._read.values()), now - self._began))

    def say(self, words: str) -> None:
        """Say what is done now instead, and takes a while."""
        self._write(words)

    def _line(self, done: int, seconds: float) -> str:
        told = f"{done / 1e6:,.0f} MB, {done / 1e6 / max(seconds, 0.1):,.0f} MB/s"
        if not self._total:  # a pipe does not say how much is to come
            return told
        share = min(1.0, done / self._total)
        filled = round(share * _WIDTH)
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}  {told}"

    def _write(self, line: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()


def _size(stream: IO[bytes]) -> int:
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, ValueError):
        return 0

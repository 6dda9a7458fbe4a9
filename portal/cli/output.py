"""What every command does where its output cannot be written: a sentence or nothing, never a traceback."""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

READER_GONE = 128 + signal.SIGPIPE  # what a shell reports of a program that this signal ended


@contextmanager
def writing_carefully() -> Iterator[None]:
    """Run a command: end it quietly where its reader has gone (`… | head`), in one sentence where a disk is full."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # it was closed before we began (`>&-`)
                sys.stdout.flush()
    except BrokenPipeError:
        _write_nowhere()
        sys.exit(READER_GONE)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _write_nowhere()
        sys.exit(f"Error: {error.filename or 'the output'} cannot be written: {error.strerror}.")


def _write_nowhere() -> None:
    """Let the interpreter's last flush of standard output succeed: what it would say comes too late for anybody."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def replace_file(path: Path, content: bytes) -> None:
    """Write a whole file or none: what stood there stays until the new one is complete.

    A link is followed; a device or pipe, which nothing may take the place of, is written to as it is.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(content)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)

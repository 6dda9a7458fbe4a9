"""What commands read: a file by its name, or standard input as `-`."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from django.core.management.base import CommandError

STDIN: Final = "-"


def name_shown(name: str) -> str:
    """Return how an input is called in messages and batches: never by its path."""
    return "standard input" if name == STDIN else Path(name).name


@contextlib.contextmanager
def open_input(name: str) -> Iterator[BinaryIO]:
    """Open an input as bytes. Errors: `CommandError` where it cannot be opened."""
    if name == STDIN:
        yield sys.stdin.buffer
        return
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(Path(name).open("rb"))
        except OSError as error:
            raise CommandError(f"{name} cannot be read: {error.strerror}.") from error
        yield stream

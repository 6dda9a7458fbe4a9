"""What commands are given: a file by its name, or standard input as `-`; a cluster by its name."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from django.core.management.base import CommandError

from principals.models import Cluster

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


def find_cluster(name: str) -> Cluster:
    """Return the cluster of that name, in any case. Errors: `CommandError` with the names that there are."""
    cluster = Cluster.objects.named(name).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no cluster {name!r}; known: {known}.")
    return cluster

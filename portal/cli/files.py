"""The files that `gatehouse assess` is given: opened or refused before any of them is read."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

STDIN = "-"


class Unusable(Exception):
    """A file or an option that cannot be used: what to say of it."""


def open_all(names: Sequence[str], stdin: IO[bytes], stack: ExitStack) -> Iterator[tuple[str, IO[bytes]]]:
    """Open every file before any is read, so that a wrong name costs no time. Errors: `Unusable`."""
    for name in names:
        if name == STDIN:
            yield "standard input", stdin
            continue
        try:
            stream = Path(name).open("rb")  # noqa: SIM115 - the stack closes it
        except OSError as error:
            raise Unusable(_unreadable(name, error)) from None
        yield name, stack.enter_context(stream)


def check_stdin(names: Sequence[str]) -> None:
    """Refuse to read standard input more than once. Errors: `Unusable`."""
    if names.count(STDIN) > 1:
        raise Unusable("Standard input can be read once [stdin_twice]\nGive - only once.")


def read_names(name: str) -> frozenset[str]:
    """Read login names, one a line; `#` begins a remark. Errors: `Unusable`."""
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(_unreadable(name, error)) from None
    users = frozenset(filter(None, (line.partition("#")[0].strip() for line in lines)))
    if not users:
        raise Unusable(f"{name}: there is no login name in it [no_names]\nWrite one login name a line.")
    return users


def check_outs(outs: Sequence[str], read: Iterable[str]) -> None:
    """Refuse a place that cannot be written to, or that is a file to be read, before an hour of reading.

    Errors: `Unusable`.
    """
    for out in outs:
        if out == STDIN:
            continue
        if not _can_write(Path(out)):
            raise Unusable(cannot_write(out))
        if any(_is_same(out, name) for name in read if name != STDIN):
            raise Unusable(f"{out} is a dump to be read [out_is_dump]\nName another file for the report, by --out.")


def cannot_write(out: str, why: str = "") -> str:
    """Say that there can be no report at a place."""
    told = f": {why}" if why else ""
    return f"{out} cannot be written{told} [cannot_write]\nName a file in a folder that you may write to, by --out."


def _can_write(out: Path) -> bool:
    """Say whether a file may be put somewhere, as far as that can be told without trying."""
    try:
        place = out.resolve()
        special = place.exists() and not place.is_file()  # a device or pipe is written to; a file is replaced
        return not place.is_dir() and place.parent.is_dir() and os.access(place if special else place.parent, os.W_OK)
    except OSError:  # a name that no file can have
        return False


def _is_same(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def _unreadable(name: str, error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) else "it is not text"
    return f"{name} cannot be read: {why} [unreadable]\nName a file that you may read, or - for standard input."

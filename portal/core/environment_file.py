"""The file that holds a site's settings: `NAME='value'` a line, as systemd, a shell and our settings read it."""

import os
from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from portal.core.errors import Conflict, Invalid

_HEAD = """\
# Settings of this portal; docs/operators.md tells of each. It holds secrets: keep it to its owner (mode 0600).
# systemd: EnvironmentFile={path}    by hand: GATEHOUSE_ENV_FILE={path} .venv/bin/python manage.py …
"""
# What one of its readers would take for something else.
_UNWRITABLE = frozenset("'\"\\\n\r\0`$")


def require_absent(path: Path) -> None:
    """Raise `Conflict` where there is something already: a second run must not lose the secrets of the first."""
    if path.exists() or path.is_symlink():
        raise Conflict(
            f"{path} is there already, and it is not overwritten.", code="file_exists",
            remedy="Edit it, move it away, or name another with --file.",
        )  # fmt: skip


def text_of(values: Mapping[str, str], path: Path) -> str:
    """Return what the file will hold. Errors: `Invalid` for a value that cannot stand in it."""
    for name, value in values.items():
        if _UNWRITABLE & set(value) or not value.isprintable():  # some of those end a line, to our own reader
            raise Invalid(
                f"{name} holds a character that a settings file cannot.", code="value_unwritable",
                remedy=f"Do without quotes, backslashes, `$` and line ends, or put it into a file and set {name}_FILE.",
            )  # fmt: skip
    return _HEAD.format(path=path) + "".join(f"{name}='{value}'\n" for name, value in values.items())


def write(path: Path, text: str) -> None:
    """Write the file, for its owner alone, where nothing is. Errors: `Conflict`, `Invalid`."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        require_absent(path)
        raise
    except OSError as error:
        raise Invalid(
            f"{path} cannot be written: {error.strerror}.", code="file_unwritable", remedy="Name another with --file."
        ) from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def load(env: type, path: str) -> None:
    """Read the file into the environment, where it says nothing yet. Errors: `ImproperlyConfigured`."""
    if not path:
        return
    try:
        with Path(path).open(encoding="utf-8") as file:
            env.read_env(file)  # type: ignore[attr-defined]
    except OSError as error:
        raise ImproperlyConfigured(f"GATEHOUSE_ENV_FILE, {path}, cannot be read: {error.strerror}.") from None

"""Where a login's token is kept: in memory of this node alone, a file of mode 0600 on a tmpfs, one for each portal.

$XDG_RUNTIME_DIR first, which the system empties when its person is gone; else /run/user/UID, else a folder of one's
own in /dev/shm. Never a disk, never a home that other hosts mount.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_MOUNTS = Path("/proc/self/mounts")


class NoPlace(Exception):
    """There is no place in memory that is this person's alone."""


def name_of(url: str) -> str:
    """Return the file's name: a token of one portal never goes to another; GATEHOUSE_AGENT keeps agents apart."""
    agent = os.environ.get("GATEHOUSE_AGENT", "")
    return hashlib.sha256(f"{url.rstrip('/')}\n{agent}".encode()).hexdigest()[:24]


def find(url: str) -> Path | None:
    """Return the file of a portal's token, where there is one that is ours."""
    for folder in _folders():
        file = folder / "gatehouse" / name_of(url)
        if _is_ours(folder) and _is_ours(file.parent) and file.is_file():
            return file
    return None


def write(url: str, token: str) -> Path:
    """Keep a token, and return where. Errors: `NoPlace`."""
    for folder in _folders():
        if folder.parent == Path("/dev/shm"):  # noqa: S108 - a folder of one's own in it, looked at before it is used
            _make(folder)
        if not (_is_ours(folder) and _is_in_memory(folder) and _make(folder / "gatehouse")):
            continue
        file = folder / "gatehouse" / name_of(url)
        half = file.with_name(f".{file.name}.{os.getpid()}")
        half.unlink(missing_ok=True)
        handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(f"{token}\n")
        half.replace(file)
        return file
    raise NoPlace("There is no place in memory that is yours alone: $XDG_RUNTIME_DIR, /run/user, /dev/shm.")


def _folders() -> Iterator[Path]:
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given.startswith("/"):
        yield Path(given)
    yield Path(f"/run/user/{os.getuid()}")
    yield Path(f"/dev/shm/gatehouse-{os.getuid()}")  # noqa: S108 - see `write`


def _make(folder: Path) -> bool:
    """Make a folder of one's own; say whether it is that now."""
    try:
        folder.mkdir(0o700, exist_ok=True)
    except OSError:
        return False
    return _is_ours(folder)


def _is_ours(folder: Path) -> bool:
    """Say whether a folder, no link to one, is this person's and nobody else may look into it."""
    try:
        seen = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not seen.st_mode & 0o077


def _is_in_memory(folder: Path) -> bool:
    """Say whether a folder stands on a file system that is in memory, as the kernel's list of mounts says."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    place, kind, depth = str(folder.resolve()), "", -1
    for line in mounts:
        _, at, of_kind, *_ = line.split(" ")
        at = at.replace("\\040", " ")
        holds = at == "/" or place == at or place.startswith(f"{at}/")
        if holds and len(at) >= depth:  # the last of several at one place is on top
            kind, depth = of_kind, len(at)
    return kind in IN_MEMORY

"""Batches that wait to be sent: a file each, whole or not at all, and never more of them than the site allows.

A file holds the digest of the body on its first line, so that a body which was altered or cut is never sent. It is
signed when it is sent, with the token of that time.
"""

import fcntl
import hashlib
import json
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from portal.cli.files import Unusable
from telemetry.engine.collector.batches import Batch

MOST_FILES = 20_000  # two weeks of a batch a minute
MOST_REJECTED = 200
_ENDING = ".batch"


class Waiting(NamedTuple):
    """A batch as it lies there."""

    id: str
    body: bytes


class Spool:
    """A folder of batches. `put` is for the thread that makes them, the others for the one that sends."""

    def __init__(self, folder: Path, *, limit_bytes: int) -> None:
        self._folder, self._limit_bytes = folder, limit_bytes
        self._rejected = folder / "rejected"
        self._number = 0
        self._lost = 0
        self._lock = threading.Lock()
        self.arrived = threading.Event()

    def open(self) -> None:
        """Make the folder ours. Errors: `Unusable` where it cannot be written to, or another collector has it."""
        try:
            self._rejected.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._locked = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for half in self._folder.glob(".half*"):
                half.unlink()
        except BlockingIOError:
            raise Unusable(
                f"Another collector uses {self._folder} [already_running]\nStop it first: one counts a node."
            ) from None
        except OSError as error:
            raise Unusable(
                f"{self._folder} cannot be used: {error.strerror} [spool_unusable]\n"
                "Let it be a folder of the account that `user` names, mode 0700."
            ) from None

    def put(self, batch: Batch) -> None:
        """Write a batch; the oldest leave where there is no room, and are counted. Errors: `OSError`."""
        data = _digest(batch.body) + b"\n" + batch.body
        self._make_room(len(data))
        self._number += 1
        name = f"{time.time_ns():019}-{self._number:06}-{batch.id}{_ENDING}"
        half = self._folder / f".half-{name}"
        try:
            with half.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            half.rename(self._folder / name)
        except OSError:
            with suppress(OSError):
                half.unlink()
            self._count(batch.body)
            raise
        _settle(self._folder)
        self.arrived.set()

    def waiting(self) -> list[Path]:
        """Return the files that wait, the oldest first."""
        return sorted(self._folder.glob(f"[0-9]*{_ENDING}"))

    def read(self, path: Path) -> Waiting | None:
        """Return a batch; None for a file that is gone, or is not as it was written."""
        try:
            digest, _, body = path.read_bytes().partition(b"\n")
        except OSError:
            return None
        name = path.name.removesuffix(_ENDING).split("-", 2)[-1]
        return Waiting(name, body) if digest == _digest(body) else None

    def remove(self, path: Path) -> None:
        """Forget a batch that arrived."""
        with suppress(FileNotFoundError):
            path.unlink()

    def reject(self, path: Path) -> None:
        """Set a batch aside that will never be taken; it is counted as lost, and its oldest fellows are forgotten."""
        with suppress(OSError):
            self._count(path.read_bytes().partition(b"\n")[2])
        with suppress(FileNotFoundError):
            path.rename(self._rejected / path.name)
        for old in sorted(self._rejected.iterdir())[:-MOST_REJECTED]:
            self.remove(old)

    def take_lost(self) -> int:
        """Return how many events were in batches that will not arrive, since the last call."""
        with self._lock:
            lost, self._lost = self._lost, 0
        return lost

    def _make_room(self, length: int) -> None:
        waiting = [(path, size) for path in self.waiting() if (size := _size(path)) is not None]
        total = sum(size for _, size in waiting) + length
        for place, (path, size) in enumerate(waiting):
            if total <= self._limit_bytes and len(waiting) - place < MOST_FILES:
                return
            with suppress(OSError):
                self._count(path.read_bytes().partition(b"\n")[2])
            self.remove(path)
            total -= size

    def _count(self, body: bytes) -> None:
        with self._lock:
            self._lost += _events_of(body)


def _digest(body: bytes) -> bytes:
    return b"sha256:" + hashlib.sha256(body).hexdigest().encode()


def _events_of(body: bytes) -> int:
    try:
        return max(0, int(json.loads(body)["health"]["events"]))
    except (ValueError, KeyError, TypeError):
        return 0


def _size(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_size
    return None


def _settle(folder: Path) -> None:
    """Have the names in a folder on the disk, as fsync(2) asks for."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(place)
    finally:
        os.close(place)

"""Leases: exactly one process does a thing, on any database, without a lock that outlives it."""

import hashlib
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q

from portal.core import clock
from portal.core.models import Lease

LONGEST: Final = timedelta(minutes=10)


def holder_name() -> str:
    """Return a name for this process that no other process has, by which others of its host see when it is gone."""
    pid = os.getpid()
    return f"{socket.gethostname()[:24]}:{_place()}:{pid}:{_born(pid)}:{secrets.token_hex(4)}"


def is_gone(holder: str) -> bool:
    """Say whether the process of that name has ended for sure: it was one of this host and its ids are ours, too."""
    _, place, pid, born, _ = holder.rsplit(":", 4) if holder.count(":") >= 4 else ("", "", "", "", "")
    if not place or place != _place() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is another user's
        pass
    now_born = _born(int(pid))  # "" where it is hidden from us
    return bool(born and now_born) and now_born != born


@lru_cache(maxsize=1)
def _place() -> str:
    """Return what tells apart where a process id means the same process: boot and namespace; "" where nobody says."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256(f"{boot}{Path('/proc/self/ns/pid').readlink()}".encode()).hexdigest()[:12]
    except OSError:
        return ""


def _born(pid: int) -> str:
    """Return when a process started, in ticks since the boot (proc(5)); "gone" where only its parent is to notice."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "gone" if fields[0] == "Z" else fields[19]


def take(name: str, holder: str, *, seconds: float) -> bool:
    """Take or renew the lease `name` for `holder`, for `LONGEST` at most; say whether it is held. One row decides.

    A lease that runs on far beyond that was written while a clock was ahead, and is nobody's; neither is that of a
    process of this host that was killed.
    """
    now = clock.now()
    until = now + min(timedelta(seconds=seconds), LONGEST)
    free = Lease.objects.filter(Q(holder=holder) | Q(until__lt=now) | Q(until__gt=now + 2 * LONGEST), name=name)
    if free.update(holder=holder, until=until):
        return True
    if (other := Lease.objects.filter(name=name).values_list("holder", flat=True).first()) is not None:
        left = Lease.objects.filter(name=name, holder=other) if is_gone(other) else Lease.objects.none()
        return bool(left.update(holder=holder, until=until))
    try:
        with transaction.atomic():
            Lease.objects.create(name=name, holder=holder, until=until)
    except IntegrityError:
        return False
    return True


def is_held(name: str) -> bool:
    """Say whether anybody holds the lease `name`."""
    return Lease.objects.filter(name=name, until__gte=clock.now()).exists()


def release(name: str, holder: str) -> None:
    """Give the lease back, where it is still ours."""
    Lease.objects.filter(name=name, holder=holder).delete()


@contextmanager
def held(name: str, *, seconds: float) -> Iterator[str]:
    """Hold the lease `name` for a block; give it the holder to renew it with, "" where somebody else has it."""
    holder = holder_name()
    if not take(name, holder, seconds=seconds):
        yield ""
        return
    try:
        yield holder
    finally:
        release(name, holder)

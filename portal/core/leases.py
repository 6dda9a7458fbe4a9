"""Leases: exactly one process does a thing, on any database, without a lock that outlives it."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q

from portal.core import clock
from portal.core.models import Lease

LONGEST: Final = timedelta(minutes=10)


def holder_name() -> str:
    """Return a name for this process that no other process has."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"


def take(name: str, holder: str, *, seconds: float) -> bool:
    """Take or renew the lease `name` for `holder`, for `LONGEST` at most; say whether it is held. One row decides.

    A lease that runs on far beyond that was written while a clock was ahead, and is nobody's.
    """
    now = clock.now()
    until = now + min(timedelta(seconds=seconds), LONGEST)
    free = Lease.objects.filter(Q(holder=holder) | Q(until__lt=now) | Q(until__gt=now + 2 * LONGEST), name=name)
    if free.update(holder=holder, until=until):
        return True
    if Lease.objects.filter(name=name).exists():
        return False
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

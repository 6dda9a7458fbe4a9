"""Room on the disk: whether a failure means that there is none, and whether there is enough to go on."""

import errno
import os
import sqlite3
from typing import Final

from django.conf import settings

STATUS: Final = 507  # Insufficient Storage (RFC 4918, 11.5)
_FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# The second: the index of the write-ahead log cannot grow, which SQLite tells apart from a table that cannot.
_FULL_SQLITE: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
_FULL_POSTGRES: Final = "53100"  # disk_full (PostgreSQL manual, appendix A)
_MIB: Final = 2**20


def is_full(error: BaseException | None) -> bool:
    """Say whether a failure, or what it came from, is that a disk or database has no room left."""
    while error is not None:
        if (
            getattr(error, "errno", None) in _FULL_ERRNOS
            or getattr(error, "sqlite_errorcode", None) in _FULL_SQLITE
            or getattr(error, "sqlstate", None) == _FULL_POSTGRES
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def want_of_room() -> str:
    """Say what is missing where the data folder's file system has less left than the reserve; else nothing."""
    system = os.statvfs(settings.DATA_DIR)
    free = system.f_bavail * system.f_frsize
    if free >= settings.DISK_RESERVE_BYTES:
        return ""
    return (
        f"{free / _MIB:,.0f} MiB are free where the data folder lies, {settings.DISK_RESERVE_BYTES / _MIB:,.0f} MiB "
        "are kept in reserve: make room"
    )

"""The two processes: the helper keeps what it was given, this one gives all of it away."""

import ctypes
import fcntl
import os
import pwd
import resource
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from portal.cli.files import Unusable

PIPE_BYTES = 1 << 20
MEMORY_BYTES = 512 << 20  # of addresses, threads and libraries included
OPEN_FILES = 64
_FIRST, _AS_OTHERS = -10, 0  # nice(2)
_ROOT = Path(__file__).resolve().parents[3]
_HELPER = (
    "import sys; sys.path.insert(0, sys.argv[1]); from telemetry.engine.collector.helper import main; "
    "sys.exit(main(sys.argv[2:]))"
)
_NO_NEW_PRIVILEGES, _AMBIENT, _CLEAR_ALL = 38, 47, 4  # prctl(2)
_CAPABILITIES_V3 = 0x2008_0522  # capget(2)


def start_helper(
    *, walk: bool, kill_file: str, markers: Sequence[str] = (), only: str = ""
) -> "tuple[subprocess.Popen[bytes], int]":
    """Start the helper with the rights that we still have; return it and the end of the pipe to read from.

    It goes before other work, little as it is: the words of a program are gone when that ends. It is a fresh
    interpreter that loads nothing but its own few files, with an empty environment. `markers` and `only` are as
    `helper.main` takes them. Errors: `Unusable`.
    """
    reading, writing = os.pipe()
    with suppress(PermissionError):  # the account holds many pipes: the smaller one does too
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    arguments = [str(_ROOT), str(writing), "walk" if walk else "events", kill_file, " ".join(markers), only]
    try:
        helper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _HELPER, *arguments],
            pass_fds=[writing], env={}, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        os.close(reading)
        raise Unusable(
            f"{sys.executable} cannot be started: {error.strerror} [no_helper]\n"
            "Install it, and the Python that it runs on, where everybody may read and run them."
        ) from None
    finally:
        os.close(writing)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, helper.pid, _FIRST)
    return helper, reading


def account(name: str) -> pwd.struct_passwd:
    """Return an account by name. Errors: `Unusable`."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise Unusable(
            f"There is no account {name!r} to run as [no_account]\n"
            f"Make it (useradd --system --shell /usr/sbin/nologin {name}), or name another by `user`."
        ) from None


def give_up(to: pwd.struct_passwd | None) -> None:
    """Give up all rights for good: root becomes `to`, others stay who they are and lose what they were lent.

    Errors: `Unusable`.
    """
    if os.geteuid() == 0:
        if to is None or to.pw_uid == 0:
            raise Unusable("The account to run as is root [root_account]\nName another by `user`.")
        os.setgroups([])
        os.setresgid(to.pw_gid, to.pw_gid, to.pw_gid)
        os.setresuid(to.pw_uid, to.pw_uid, to.pw_uid)
        if os.getresuid() != (to.pw_uid,) * 3 or os.getresgid() != (to.pw_gid,) * 3:
            raise Unusable("The rights of root cannot be given up [no_drop]\nAllow CAP_SETUID and CAP_SETGID.")
    libc = ctypes.CDLL(None, use_errno=True)
    nothing = (ctypes.c_uint32 * 6)()  # capset(2): effective, permitted, inheritable, twice
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    steps = (
        libc.prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0), libc.capset(header, nothing),
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
    )  # fmt: skip
    if any(steps):
        raise Unusable("Rights cannot be given up [no_drop]\nAllow prctl(2) and capset(2) where they are filtered.")
    if os.getpriority(os.PRIO_PROCESS, 0) < _AS_OTHERS:  # the service begins as the helper goes on
        os.setpriority(os.PRIO_PROCESS, 0, _AS_OTHERS)
    _limit()


def lend_nothing() -> None:
    """Keep capabilities that we were lent from a program that we are about to become."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0) or libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "Rights cannot be given up")


def _limit() -> None:
    os.umask(0o077)
    limits = ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_NOFILE, OPEN_FILES), (resource.RLIMIT_CORE, 0))
    for what, most in limits:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))

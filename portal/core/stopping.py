"""Whether this process is about to end: long work looks between its transactions, and leaves the rest to the next."""

import os
import signal
from types import FrameType
from typing import Final

# Set for the processes that `make run` starts: it alone speaks to whoever sits at the terminal.
SUPERVISED: Final = "GATEHOUSE_SUPERVISED"

_asked = False


class Stopping(Exception):
    """The process is to end: what was committed stays, the rest is for another."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came: a command ends as Ctrl-C ends it, giving back what it holds."""


def end_on_sigterm() -> None:
    """Let SIGTERM end a command by `Terminated`, and a second one at once.

    Commands that wait for long set handlers of their own.
    """
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(_: int, __: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise Terminated


def status_of(error: KeyboardInterrupt) -> int:
    """Return the exit status by which a shell knows the signal that ended a command."""
    return 128 + (signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT)


def is_supervised() -> bool:
    """Say whether this process was started by `make run`, which says itself that everything stops."""
    return bool(os.environ.get(SUPERVISED))


def ask() -> None:
    """Ask long work in this process to stop. Safe in a signal's handler: it takes no lock."""
    global _asked
    _asked = True


def asked() -> bool:
    """Say whether the process is to end."""
    return _asked


def check() -> None:
    """Leave long work between two transactions once the process is to end. Errors: `Stopping`."""
    if asked():
        raise Stopping

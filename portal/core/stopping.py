"""Whether this process is about to end: long work looks between its transactions, and leaves the rest to the next."""

_asked = False


class Stopping(Exception):
    """The process is to end: what was committed stays, the rest is for another."""


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

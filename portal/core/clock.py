"""The one place that reads the clock, so that tests can set it and everything agrees on UTC."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

_set_to: ContextVar[datetime | None] = ContextVar("clock_set_to", default=None)


def now() -> datetime:
    """Return the present instant, aware, in UTC."""
    return _set_to.get() or datetime.now(UTC)


def now_s() -> int:
    """Return the present instant in whole seconds since 1970."""
    return int(now().timestamp())


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    """Let all that this block does happen at `moment` (aware): history of a demo, a test of what time changes."""
    token = _set_to.set(moment.astimezone(UTC))
    try:
        yield
    finally:
        _set_to.reset(token)

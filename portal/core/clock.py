"""The one place that reads the clock, so that tests can set it and everything agrees on UTC."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present instant, aware, in UTC."""
    return datetime.now(UTC)


def now_s() -> int:
    """Return the present instant in whole seconds since 1970."""
    return int(now().timestamp())

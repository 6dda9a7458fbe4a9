"""The one place that reads the clock, so that tests can set it and everything agrees on UTC."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime

from django.core.serializers.json import DjangoJSONEncoder

from portal.core.errors import Invalid

_encoder = DjangoJSONEncoder()  # which answers are written with
_set_to: ContextVar[datetime | None] = ContextVar("clock_set_to", default=None)


def now() -> datetime:
    """Return the present instant, aware, in UTC."""
    return _set_to.get() or datetime.now(UTC)


def now_s() -> int:
    """Return the present instant in whole seconds since 1970."""
    return int(now().timestamp())


def written(moment: datetime) -> str:
    """Write an instant as every answer of the API does: ISO 8601 in UTC with `Z`, milliseconds where there are any."""
    text: str = _encoder.default(moment.astimezone(UTC))
    return text


def is_sane(year: int) -> bool:
    """Say whether a year leaves room for what is reckoned with it: time zones, the day after, the month before."""
    return 1970 <= year <= 2999


def read_day(text: str) -> date:
    """Read `2026-07-31`. Errors: `Invalid` for what is no day, or none that a facility can mean."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if not is_sane(day.year):
        raise Invalid(f"{text[:20]!r} is no day.", code="day", remedy="Write it as 2026-07-31.")
    return day


def midnight(day: date) -> datetime:
    """Return the first instant of a UTC day."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    """Let all that this block does happen at `moment` (aware): history of a demo, a test of what time changes."""
    token = _set_to.set(moment.astimezone(UTC))
    try:
        yield
    finally:
        _set_to.reset(token)

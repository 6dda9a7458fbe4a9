"""How fast deliveries are tried again: within seconds first, then hours apart, about a day in all."""

import random
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

# Before the second, third … attempt; 23 h 43 min in all (Standard Webhooks, "Retry schedule", asks for a day or more).
WAITS_S: Final = (5, 30, 120, 600, 1800, 3600, 7200, 14400, 21600, 36000)
ATTEMPTS: Final = len(WAITS_S) + 1
JITTER: Final = 0.2
LONGEST_ASKED_S: Final = 6 * 3600


def wait_after(attempts: int, *, asked_s: int | None = None) -> timedelta | None:
    """Return how long to wait after so many attempts that failed, or None where none follows.

    `asked_s` is what the receiver asked for (Retry-After); it makes the wait longer, up to six hours.
    """
    if attempts >= ATTEMPTS:
        return None
    own = WAITS_S[attempts - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - not for secrets
    return timedelta(seconds=max(own, min(asked_s or 0, LONGEST_ASKED_S)))


def read_retry_after(text: str, *, now: datetime) -> int | None:
    """Read a Retry-After header (RFC 9110, 10.2.3), seconds or a date, as seconds from now; None for nonsense."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0, int(((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()))

"""What becomes of a finding whose incident is closed already, and which of two severities is worse."""

from datetime import datetime, timedelta
from enum import Enum

from security.engine.incidents import OPEN_STATES, Severity, State

# A cure that fails within this time failed; later, the same thing is a new incident with clocks of its own.
CURE_STANDS_FOR = timedelta(days=30)
# A person ruled it harmless or bearable; the ruling is asked for again after this time.
RULING_STANDS_FOR = timedelta(days=90)

_ORDER = tuple(Severity)


class Recurrence(Enum):
    """Where a finding goes."""

    JOIN = "join"
    REOPEN = "reopen"
    OPEN_NEW = "open_new"


def rank(severity: Severity) -> int:
    """Give the place of a severity, 0 for low to 3 for critical."""
    return _ORDER.index(severity)


def is_worse(severity: Severity, than: Severity) -> bool:
    """Say whether the first severity is above the second."""
    return rank(severity) > rank(than)


def place_finding(
    state: State, closed_at: datetime | None, occurred: datetime, *, found: Severity, known: Severity
) -> Recurrence:
    """Decide what a finding does to the incident its key leads to.

    It joins an open incident, and a closed one when it tells of the time before the closing. After a cure it
    reopens. A false alarm and an accepted risk take it in silently, unless it is worse (``found``) than what
    was ruled upon (``known``). When cure or ruling is old, a new incident opens.
    """
    if state in OPEN_STATES or closed_at is None or occurred <= closed_at:
        return Recurrence.JOIN
    cured = state is State.RESOLVED
    if occurred - closed_at > (CURE_STANDS_FOR if cured else RULING_STANDS_FOR):
        return Recurrence.OPEN_NEW
    return Recurrence.REOPEN if cured or is_worse(found, known) else Recurrence.JOIN

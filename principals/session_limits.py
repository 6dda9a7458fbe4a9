"""How many sessions a person may have on a login node: the setting, and what the site's policy says beside it."""

from collections.abc import Callable

from django.conf import settings

from principals.engine.concurrency import Limit

_policies: list[Callable[[], Limit | None]] = []


def register_limit(read: Callable[[], Limit | None]) -> None:
    """Let an app above say a limit, None for none. All hold; the smallest is the one that people are told."""
    if read not in _policies:
        _policies.append(read)


def session_limits() -> list[Limit]:
    """Return the limits that hold now, smallest first, of equal ones that which binds; none where there is none."""
    said = [Limit(settings.SESSIONS_PER_NODE, binds=settings.SESSIONS_LIMIT == "refuse")]
    said += [limit for read in _policies if (limit := read()) is not None]
    return sorted((limit for limit in said if limit.number > 0), key=lambda limit: (limit.number, not limit.binds))

"""How many questions about jobs a token may ask in a minute: the setting, or less where the site's policy says so."""

from collections.abc import Callable

from django.conf import settings

_policies: list[Callable[[], int | None]] = []


def register_budget(read: Callable[[], int | None]) -> None:
    """Let an app above say a number, None for none. The smallest counts."""
    if read not in _policies:
        _policies.append(read)


def questions_a_minute() -> int:
    """Return the budget that holds now."""
    said = [number for read in _policies if (number := read()) is not None]
    return min([settings.POLLS_PER_MINUTE, *said])

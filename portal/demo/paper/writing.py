"""Times as Slurm and the API write them: cheap, for there are millions."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_DAY_S: Final = 86_400


@lru_cache(maxsize=256)
def _day_text(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY_S, UTC).date().isoformat()


def clock_text(seconds: int) -> str:
    """Write seconds of a day as HH:MM:SS."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def time_text(moment_s: int) -> str:
    """Write an instant as sacct does under TZ=UTC."""
    day, rest = divmod(moment_s, _DAY_S)
    return f"{_day_text(day)}T{clock_text(rest)}"


def span_text(seconds: int) -> str:
    """Write a duration as sacct does: [days-]HH:MM:SS."""
    days, rest = divmod(seconds, _DAY_S)
    return f"{days}-{clock_text(rest)}" if days else clock_text(rest)

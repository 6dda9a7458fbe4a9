"""Durations and times as squeue writes them, and back."""

import time
from typing import Final

from telemetry.engine.slurm.printing.errors import PassedOn

YEAR_S: Final = 365 * 24 * 60 * 60
INVALID: Final = "INVALID"


def write_duration(seconds: int) -> str:
    """Write a duration: `1:05`, `2:00:00`, `1-00:00:00`; what is negative or above a year is `INVALID`."""
    if not 0 <= seconds <= YEAR_S:
        return INVALID
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def read_duration(text: str) -> int:
    """Return the seconds of a duration as `write_duration` writes it. Errors: `PassedOn`."""
    days, rest = text.split("-", 1) if "-" in text else ("0", text)
    parts = rest.split(":")
    if not all(part.isascii() and part.isdigit() for part in (days, *parts)) or len(parts) not in {2, 3}:
        raise PassedOn("time")
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return int(days) * 86_400 + seconds


def write_time(text: str) -> str:
    """Write a time that is kept as seconds since 1970, in the zone of this process; words stay (`N/A`, `NONE`)."""
    if not (text.isascii() and text.isdigit()):
        return text
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(int(text)))

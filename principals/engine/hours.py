"""The hours in which an agent works, as its registration declares them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIME: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d")


@dataclass(frozen=True, slots=True)
class Hours:
    """Days of the week (0 is Monday) and a stretch of each, in a time zone.

    A stretch that ends before it starts goes on into the next day: 20:00 to 06:00 on Friday ends on Saturday.
    """

    days: tuple[int, ...]
    start: time
    end: time
    zone: str

    @property
    def words(self) -> str:
        """Say them: `Mon to Fri, 08:00 to 18:00 (Europe/Zurich)`."""
        return f"{_days_in_words(self.days)}, {self.start:%H:%M} to {self.end:%H:%M} ({self.zone})"

    def covers(self, at: datetime) -> bool:
        """Say whether a moment lies within them."""
        local = at.astimezone(ZoneInfo(self.zone))
        now, today = local.time(), local.weekday()
        if self.start < self.end:
            return today in self.days and self.start <= now < self.end
        yesterday = (local - timedelta(days=1)).weekday()
        return (today in self.days and now >= self.start) or (yesterday in self.days and now < self.end)

    def as_json(self) -> dict[str, Any]:
        """Return them as a row keeps them."""
        return {
            "days": list(self.days), "start": f"{self.start:%H:%M}", "end": f"{self.end:%H:%M}", "zone": self.zone,
        }  # fmt: skip


def read_hours(said: Mapping[str, Any]) -> Hours | None:
    """Read hours as a row or a request has them; None for an empty one: any hour. Raises ValueError with a sentence."""
    if not said:
        return None
    days = sorted({day for day in said.get("days", ()) if isinstance(day, int) and 0 <= day < len(DAYS)})
    if not days:
        raise ValueError("Choose the days of the week on which it works.")
    start, end = _time(said.get("start")), _time(said.get("end"))
    if start == end:
        raise ValueError("The hours end when they start: leave them out if it works at any hour.")
    zone = str(said.get("zone", ""))
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError) as error:  # KeyError: ZoneInfoNotFoundError
        raise ValueError("No such time zone.") from error
    return Hours(tuple(days), start, end, zone)


def _time(said: object) -> time:
    if not isinstance(said, str) or not _TIME.fullmatch(said):
        raise ValueError("Give a time of day as 08:00.")
    return time.fromisoformat(said)


def _days_in_words(days: tuple[int, ...]) -> str:
    """Say days of the week, three and more in a row as a stretch."""
    if len(days) == len(DAYS):
        return "Every day"
    first, last = days[0], days[-1]
    if len(days) > 2 and last - first == len(days) - 1:
        return f"{DAYS[first]} to {DAYS[last]}"
    return ", ".join(DAYS[day] for day in days)

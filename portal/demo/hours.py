"""When people and agents work: weights for each hour of a window, by the clock on the facility's wall."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

HOUR_S: Final = 3600
DAY_S: Final = 86_400
_OFFICE_HOURS_A_WEEK, _EVENING_HOURS_A_WEEK, _WEEKEND_HOURS_A_WEEK = 50, 70, 48
# A lunch dip and a slow start, so that office hours are no box.
_OFFICE_SHAPE: Final = (0.6, 0.95, 1.15, 1.2, 0.85, 0.95, 1.2, 1.25, 1.1, 0.75)


def local_hour(moment_s: int, zone: ZoneInfo) -> datetime:
    """Return the wall-clock time of an instant, to the quarter of an hour; right through both changes of the clock."""
    return _local_quarter(moment_s - moment_s % 900, zone)  # offsets of zones are whole quarters of an hour


@lru_cache(maxsize=8192)
def _local_quarter(moment_s: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(moment_s, UTC).astimezone(zone)


def is_office(local: datetime) -> bool:
    """Say whether it is Monday to Friday, 08:00 to 18:00."""
    return local.weekday() < 5 and 8 <= local.hour < 18


def agent_weight(local: datetime) -> float:
    """Weigh an hour for agents: nights and weekends nearly like days.

    Loops run on past the hour in which they begin, so that what comes out is flatter: 36 % of submissions in office
    hours, 40 % in other hours of weekdays, 24 % at weekends.
    """
    if local.weekday() >= 5:
        return 22.0 / _WEEKEND_HOURS_A_WEEK
    if not is_office(local):
        return 37.0 / _EVENING_HOURS_A_WEEK
    return 41.0 / _OFFICE_HOURS_A_WEEK * _OFFICE_SHAPE[local.hour - 8]


def human_weight(local: datetime) -> float:
    """Weigh an hour for people: three quarters in office hours, the evening before the night, little at weekends."""
    night = 0.15 if local.hour < 7 else 1.0
    if local.weekday() >= 5:
        return 8.5 / _WEEKEND_HOURS_A_WEEK * night
    if not is_office(local):
        evening = 1.8 if 18 <= local.hour < 22 else 0.7
        return 15.5 / _EVENING_HOURS_A_WEEK * evening * night
    return 76.0 / _OFFICE_HOURS_A_WEEK * _OFFICE_SHAPE[local.hour - 8]


class Hours:
    """The hours of a window [start, end), epoch seconds, that lie in given spans, to draw moments from."""

    def __init__(self, spans: Sequence[tuple[int, int]], zone: ZoneInfo, weigh: Callable[[datetime], float]) -> None:
        self.spans = sorted(spans)
        self._starts = [start for start, _ in self.spans]
        self._pieces: list[tuple[int, int]] = []
        weights: list[float] = []
        for start, end in self.spans:
            moment = start
            while moment < end:
                behind = min(moment - moment % HOUR_S + HOUR_S, end)
                self._pieces.append((moment, behind))
                weights.append(weigh(local_hour(moment, zone)) * (behind - moment))
                moment = behind
        self._cumulative = list(accumulate(weights))

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def draw(self, rng: Random) -> int:
        """Draw one moment, each hour as often as it weighs."""
        start, end = rng.choices(self._pieces, cum_weights=self._cumulative)[0]
        return rng.randrange(start, end)

    def covers(self, moment_s: int) -> bool:
        """Say whether a moment lies in one of the spans."""
        i = bisect_right(self._starts, moment_s) - 1
        return i >= 0 and moment_s < self.spans[i][1]

"""Counts of a minute: what leaves a node of all that was run on it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from telemetry.engine.collector.processes import Driver

MINUTE_S: Final = 60
MOST: Final = 20_000  # rows that wait to leave; beyond, a session's counts join those of no session


@dataclass(frozen=True, slots=True)
class Minute:
    """What a session, or all that has none, did in a minute. `counts` are by the measures of `activity`."""

    session: str
    driver: Driver
    minute_s: int
    counts: dict[str, int]


class Minutes:
    """Counts that wait for the end of their minute. One that was closed is never opened again."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str, Driver], dict[str, int]] = {}
        self._closed_s = 0

    def add(self, at_s: float, session: str, driver: Driver, measures: Iterable[str]) -> None:
        """Count measures once each; what comes too late for its minute counts in the next that is open."""
        minute_s = max(int(at_s) // MINUTE_S * MINUTE_S, self._closed_s)
        row = self._rows.get((minute_s, session, driver))
        if row is None:
            place = minute_s, session if len(self._rows) < MOST else "", driver
            row = self._rows.setdefault(place, {})
        for measure in measures:
            row[measure] = row.get(measure, 0) + 1

    def close(self, upto_s: float) -> list[Minute]:
        """Return the rows of the minutes that began before a time, and close those."""
        due = sorted(place for place in self._rows if place[0] < upto_s)
        self._closed_s = max(self._closed_s, -int(-upto_s // MINUTE_S) * MINUTE_S)
        rows = [(place, self._rows.pop(place)) for place in due]
        return [Minute(session, driver, minute_s, counts) for (minute_s, session, driver), counts in rows if counts]

"""Counts of a minute: what leaves a node of all that was run on it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from telemetry.engine.collector.processes import Driver, Place

MINUTE_S: Final = 60
MOST: Final = 20_000  # rows that wait to leave; beyond, a session's counts join those of no session


@dataclass(frozen=True, slots=True)
class Minute:
    """What a session, or all at a place that has none, did in a minute. `counts` are by the measures of `activity`."""

    session: str
    driver: Driver
    minute_s: int
    counts: dict[str, int]
    place: Place = "login"


class Minutes:
    """Counts that wait for the end of their minute. One that was closed is never opened again."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str, Driver, Place], dict[str, int]] = {}
        self._closed_s = 0

    def add(self, at_s: float, session: str, driver: Driver, place: Place, measures: Iterable[str]) -> None:
        """Count measures once each; what comes too late for its minute counts in the next that is open."""
        minute_s = max(int(at_s) // MINUTE_S * MINUTE_S, self._closed_s)
        row = self._rows.get((minute_s, session, driver, place))
        if row is None:
            key = minute_s, session if len(self._rows) < MOST else "", driver, place
            row = self._rows.setdefault(key, {})
        for measure in measures:
            row[measure] = row.get(measure, 0) + 1

    def close(self, upto_s: float) -> list[Minute]:
        """Return the rows of the minutes that began before a time, and close those."""
        due = sorted(key for key in self._rows if key[0] < upto_s)
        self._closed_s = max(self._closed_s, -int(-upto_s // MINUTE_S) * MINUTE_S)
        rows = [(key, self._rows.pop(key)) for key in due]
        return [
            Minute(session, driver, minute_s, counts, place)
            for (minute_s, session, driver, place), counts in rows
            if counts
        ]

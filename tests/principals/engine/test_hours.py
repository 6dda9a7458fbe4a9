"""The hours that an agent declares."""

from datetime import UTC, datetime, time

import pytest

from principals.engine.hours import Hours, read_hours

OFFICE = Hours((0, 1, 2, 3, 4), time(8), time(18), "America/New_York")
NIGHTS = Hours((4,), time(20), time(6), "UTC")


@pytest.mark.parametrize(
    ("hours", "at", "covered"),
    [
        (OFFICE, datetime(2026, 11, 30, 13, 0, tzinfo=UTC), True),  # Monday, 08:00 there
        (OFFICE, datetime(2026, 11, 30, 12, 59, tzinfo=UTC), False),
        (OFFICE, datetime(2026, 11, 30, 23, 0, tzinfo=UTC), False),  # 18:00 there
        (OFFICE, datetime(2026, 7, 6, 12, 0, tzinfo=UTC), True),  # in summer an hour earlier
        (OFFICE, datetime(2026, 11, 29, 15, 0, tzinfo=UTC), False),  # Sunday
        (NIGHTS, datetime(2026, 11, 27, 20, 0, tzinfo=UTC), True),  # Friday evening
        (NIGHTS, datetime(2026, 11, 28, 5, 59, tzinfo=UTC), True),  # and the morning after it
        (NIGHTS, datetime(2026, 11, 27, 5, 0, tzinfo=UTC), False),
        (NIGHTS, datetime(2026, 11, 28, 20, 0, tzinfo=UTC), False),
    ],
    ids=["starts", "before", "ends", "summer", "sunday", "evening", "morning-after", "morning-before", "day-after"],
)
def test_it_covers_its_hours_in_its_zone(hours: Hours, at: datetime, covered: bool) -> None:
    assert hours.covers(at) is covered


def test_what_is_kept_reads_as_what_was_said() -> None:
    assert read_hours(OFFICE.as_json()) == OFFICE
    assert read_hours({}) is None


@pytest.mark.parametrize(
    ("days", "words"), [((0, 1, 2, 3, 4), "Mon to Fri"), ((5, 6), "Sat, Sun"), ((0, 2), "Mon, Wed"),
                        (tuple(range(7)), "Every day")], ids=["stretch", "two", "apart", "all"],
)  # fmt: skip
def test_days_are_said_shortly(days: tuple[int, ...], words: str) -> None:
    assert Hours(days, time(8), time(18), "UTC").words == f"{words}, 08:00 to 18:00 (UTC)"


@pytest.mark.parametrize(
    "change",
    [{"days": []}, {"days": [7, "x"]}, {"start": "8:00"}, {"end": "24:00"}, {"end": "08:00"}, {"start": None},
     {"zone": "Mars/Base"}, {"zone": ""}],
    ids=["no-day", "odd-days", "short", "late", "empty", "none", "odd-zone", "no-zone"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        read_hours(OFFICE.as_json() | change)

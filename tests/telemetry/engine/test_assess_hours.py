"""Hours of the week are those of the facility's clocks, on the nights too on which they are put forward or back."""

import io
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from telemetry.engine.assessment.assessor import Assessment, Assessor
from telemetry.engine.assessment.figures import content_of
from telemetry.engine.assessment.frames import Known
from tests.telemetry.engine.sacct_texts import row, text

NOW_S = 1_900_000_000
SUBMITTED = (
    "2026-03-29T00:59:59", "2026-03-29T01:00:00", "2026-10-25T00:30:00", "2026-10-25T01:30:00", "2024-02-29T23:45:00",
    "2026-07-05T18:29:59", "2026-07-05T18:30:00", "2026-12-31T23:59:59",
)  # fmt: skip


def assess(zone: str) -> Assessment:
    lines = [
        row(JobIDRaw=str(number), Submit=at, Start="Unknown", End="Unknown", State="PENDING")
        for number, at in enumerate(SUBMITTED, start=1)
    ]
    assessor = Assessor(now_s=NOW_S, known=Known(), zone=zone)
    assessor.read(io.BytesIO(text(*lines)))
    return assessor.finish()


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Chatham"])
def test_an_hour_of_the_week_is_that_of_the_zone_s_clocks(zone: str) -> None:
    expected = [0] * 7 * 24
    for at in SUBMITTED:
        local = datetime.fromisoformat(at).replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
        expected[local.weekday() * 24 + local.hour] += 1
    figures = {one.key: one for section in content_of(assess(zone), cluster="").sections for one in section.figures}
    week = figures["hour-of-week"]
    assert [each.values[0] for each in week.rows] == expected
    assert zone in week.definition and zone in figures["outside-working-hours"].definition


def test_what_is_no_zone_is_an_error() -> None:
    with pytest.raises(ValueError, match="Middle/Earth is no time zone"):
        Assessor(now_s=NOW_S, known=Known(), zone="Middle/Earth")

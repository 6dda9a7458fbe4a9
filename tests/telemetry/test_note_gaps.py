"""A silence that was longer than a source may be silent stands in its gaps, for a while."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.core import clock
from telemetry.models import IngestBatch, IngestGap, IngestSource
from telemetry.selectors.sources import sources
from telemetry.services import note_source, prune
from telemetry.services.retention import GAPS_KEPT
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def hear(cast: Cast, *minutes: float, every_s: int | None = 60) -> None:
    for minute in minutes:
        with clock.at(NOON + timedelta(minutes=minute)):
            note_source(cluster=cast.cluster, name="site", kind="jobs")
        IngestSource.objects.filter(name="site").update(expected_every_s=every_s)


def gaps() -> list[tuple[float, float]]:
    """Minutes after noon."""
    rows = IngestGap.objects.order_by("since").values_list("since", "until")
    return [((since - NOON).total_seconds() / 60, (until - NOON).total_seconds() / 60) for since, until in rows]


def test_a_silence_longer_than_two_intervals_is_a_gap(cast: Cast) -> None:
    hear(cast, 0, 1, 3, 5.5, 6, 90)
    assert gaps() == [(3, 5.5), (6, 90)]


def test_what_comes_when_it_comes_has_none(cast: Cast) -> None:
    hear(cast, 0, 600, every_s=None)
    assert gaps() == []


def test_the_first_word_of_a_source_ends_no_silence(cast: Cast) -> None:
    IngestSource.objects.create(cluster=cast.cluster, name="site", kind="jobs", expected_every_s=60)
    hear(cast, 0)
    assert gaps() == []


def test_the_week_s_gaps_and_the_day_s_rate_are_shown(cast: Cast) -> None:
    hear(cast, 0, 10, 12, 60)
    for hours, created, updated in ((1, 100, 20), (23, 120, 0), (25, 5000, 0)):
        at = NOON + timedelta(hours=1) - timedelta(hours=hours)
        IngestBatch.objects.create(
            cluster=cast.cluster, format="sacct", source="site", created=at, created_rows=created, updated_rows=updated,
        )  # fmt: skip
    with clock.at(NOON + timedelta(hours=1)):
        [found] = [source for source in sources(with_past=True) if source.name == "site"]
    assert (found.gaps, found.silent_s, found.records_an_hour) == (2, 58 * 60, 10)
    # What comes in no batches has no such rate: "0" would say that nothing came.
    IngestSource.objects.create(cluster=cast.cluster, name="node", kind="sessions", last_received=NOON)
    assert [each.records_an_hour for each in sources(with_past=True) if each.name == "node"] == [None]
    with clock.at(NOON + timedelta(days=7, minutes=30)):
        [found] = [source for source in sources(with_past=True) if source.name == "site"]
    assert (found.gaps, found.silent_s, found.records_an_hour) == (1, 48 * 60, 0)


def test_a_gap_goes_after_its_term(cast: Cast) -> None:
    hear(cast, 0, 10)
    with clock.at(NOON + timedelta(minutes=9) + GAPS_KEPT):
        assert prune()["gaps"] == 0
    with clock.at(NOON + timedelta(minutes=11) + GAPS_KEPT):
        assert prune()["gaps"] == 1
    assert gaps() == []

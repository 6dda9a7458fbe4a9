"""EpochField: an aware datetime in, the same out to the second; plain arithmetic in the database."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db.models import BigIntegerField, ExpressionWrapper, F, Max
from django.db.models.functions import Greatest, Least
from ninja.responses import Response

from portal.core import clock
from portal.core.fields import EpochField
from principals.models import AgentSession
from tests import factories

AT = datetime(2026, 7, 1, 12, 0, 30, 999_999, tzinfo=UTC)


@pytest.fixture
def session(db: None) -> AgentSession:
    cluster = factories.make_cluster()
    return AgentSession.objects.create(
        cluster=cluster, cluster_user=factories.make_cluster_user(cluster, factories.make_user()), host="login01",
        started=AT, ended=AT + timedelta(hours=2),
    )  # fmt: skip


def test_an_instant_comes_back_to_the_second_in_utc(session: AgentSession) -> None:
    session.refresh_from_db()
    assert session.started == AT.replace(microsecond=0)
    assert session.started.tzinfo is UTC
    AgentSession.objects.update(ended=None)
    session.refresh_from_db()
    assert session.ended is None


def test_another_time_zone_is_the_same_instant(session: AgentSession) -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=-5)))
    assert AgentSession.objects.filter(started=elsewhere).exists()


def test_lookups_take_datetimes_and_seconds(session: AgentSession) -> None:
    seconds = int(AT.timestamp())
    sessions = AgentSession.objects
    assert sessions.filter(started=seconds).exists()
    assert sessions.filter(started__lte=AT, ended__gt=AT).exists()
    assert sessions.filter(started__range=(AT - timedelta(1), AT)).exists()
    assert sessions.filter(started__in=[AT, 5]).exists()
    assert not sessions.filter(started__lt=seconds).exists()
    assert sessions.aggregate(newest=Max("started"))["newest"] == AT.replace(microsecond=0)


def test_overlap_is_plain_arithmetic_in_seconds(session: AgentSession) -> None:
    start, end = int(AT.timestamp()) + 600, int(AT.timestamp()) + 10**6
    whole = ExpressionWrapper(F("ended") - F("started"), output_field=BigIntegerField())
    part = ExpressionWrapper(Least(F("ended"), end) - Greatest(F("started"), start), output_field=BigIntegerField())
    row = AgentSession.objects.annotate(whole_s=whole, part_s=part).get()
    assert (row.whole_s, row.part_s) == (7200, 6600)


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        EpochField().get_prep_value(datetime(2026, 7, 1))


def test_text_from_a_fixture_is_read() -> None:
    assert EpochField().to_python("0") == datetime(1970, 1, 1, tzinfo=UTC)
    assert EpochField().to_python(None) is None


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (AT, "2026-07-01T12:00:30.999Z"),
        (AT.replace(microsecond=0), "2026-07-01T12:00:30Z"),
        (AT.astimezone(timezone(timedelta(hours=-5))), "2026-07-01T12:00:30.999Z"),
    ],
)
def test_news_and_refusals_write_an_instant_as_the_answers_of_the_api_do(moment: datetime, text: str) -> None:
    assert clock.written(moment) == text
    assert json.loads(Response({"at": moment.astimezone(UTC)}).content) == {"at": text}

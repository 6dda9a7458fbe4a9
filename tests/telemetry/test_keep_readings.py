"""Figures of a whole cluster are read once for whoever looks, and anew when the data change."""

import time
from datetime import date
from typing import Any

import pytest

from principals.models import ClusterUser
from principals.permissions import actor_for_user
from telemetry import services
from telemetry.figures import readings as kept
from telemetry.figures import readings_of
from telemetry.selectors import Period, Scope
from tests.conftest import Cast, sign_in
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period(date(2026, 7, 1), date(2026, 7, 31))


def scope(cast: Cast, user: Any = None, **more: Any) -> Scope:
    return Scope(actor_for_user(user or cast.staff), cast.cluster, JULY, **more)


def submit(cast: Cast) -> None:
    login = ClusterUser.objects.get(user=cast.colleague)
    make_job(login, cast.lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60)
    assert services.catch_up(cluster=cast.cluster)


def test_the_second_look_reads_nothing_but_the_generation(cast: Cast, django_assert_num_queries: Any) -> None:
    submit(cast)
    first = readings_of(scope(cast))
    assert first.totals.submissions == 1
    again = scope(cast)
    with django_assert_num_queries(1):
        assert readings_of(again).totals.submissions == 1


def test_what_changed_is_read_anew(cast: Cast) -> None:
    for number in (1, 2):
        submit(cast)
        assert readings_of(scope(cast)).totals.submissions == number


def test_what_changes_while_it_is_read_is_read_anew_the_next_time(cast: Cast) -> None:
    readings = readings_of(scope(cast))
    submit(cast)
    assert readings.totals.submissions == 1
    submit(cast)
    assert readings_of(scope(cast)).totals.submissions == 2


def test_a_minute_is_the_longest(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    first, now = readings_of(scope(cast)), time.monotonic()
    monkeypatch.setattr(kept.time, "monotonic", lambda: now + kept.KEPT_S - 1)
    assert readings_of(scope(cast)) is first
    monkeypatch.setattr(kept.time, "monotonic", lambda: now + kept.KEPT_S + 1)
    assert readings_of(scope(cast)) is not first


def test_nobody_has_the_readings_of_another_or_of_a_lab(cast: Cast) -> None:
    found = [readings_of(scope(cast)), readings_of(scope(cast, cast.auditor)), readings_of(scope(cast, lab=cast.lab))]
    assert len({id(each) for each in found}) == 3
    assert readings_of(scope(cast, lab=cast.lab)) is not found[2]
    assert readings_of(scope(cast, cast.pi)) is not readings_of(scope(cast, cast.pi))


def test_few_are_kept(cast: Cast) -> None:
    first = readings_of(scope(cast))
    for month in range(1, 18):
        period = Period.month(2025 + month // 12, month % 12 + 1)
        readings_of(Scope(actor_for_user(cast.staff), cast.cluster, period))
    assert readings_of(scope(cast)) is not first
    assert len(kept.KEPT._found) == kept._MOST_KEPT


def test_the_page_shows_what_came_since(cast: Cast) -> None:
    client = sign_in(cast.staff)
    for number in (1, 2):
        submit(cast)
        response = client.get("/overview/", {"cluster": cast.cluster.name, "period": "2026-07"})
        assert response.context["asked"].readings.totals.submissions == number

"""SQLite 3.34, which RHEL 9 brings, cannot return what it inserted: keys come all the same."""

import pytest
from django.db import connection

from portal.core import clock, live
from portal.core.live import News
from portal.core.models import LiveEventTopic
from portal.demo.load import load_demo
from telemetry.models import Job, RollupDay, RollupUser

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.fixture(autouse=True)
def _no_returning(monkeypatch):
    monkeypatch.setattr(type(connection.features), "can_return_columns_from_insert", property(lambda self: False))
    assert not connection.features.can_return_rows_from_bulk_insert


def test_events_keep_their_topics():
    live.announce([News("a.b", ("t:1", "t:2")), News("c.d", ("t:1",))])
    assert sorted(LiveEventTopic.objects.values_list("event__name", "topic")) == [
        ("a.b", "t:1"), ("a.b", "t:2"), ("c.d", "t:1"),
    ]  # fmt: skip


def test_a_whole_facility_loads_with_its_rollups():
    load_demo(seed=7, now=clock.now(), jobs=500, say=lambda text: None)
    assert Job.objects.count() > 400
    assert RollupDay.objects.count() > 50
    assert RollupUser.objects.exclude(runtimes="").count() > 50

"""Days are added up from minutes, whatever order they come in and however often."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from portal.core import clock, leases
from principals.models import AgentSession
from telemetry import services
from telemetry.models import ActivityDay, ActivityDirty, ActivityMinute, DataGeneration
from telemetry.services.activity import days
from tests import factories
from tests.conftest import Cast
from tests.telemetry.activity_batches import AGENT, agent_session, counted, minute, record

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
FACTS = ("day", "host", "session__process", "cluster_user__login", "driver", "harness", "minutes", "counts")


@pytest.fixture(autouse=True)
def _at_noon():
    """All minutes of a test fall on one day."""
    with clock.at(clock.now().replace(hour=12, minute=30)):
        yield


def sums() -> list[tuple[Any, ...]]:
    return list(ActivityDay.objects.order_by("driver", "host", "session").values_list(*FACTS))


def test_it_works(cast: Cast):
    minutes = [
        counted(ago=9), counted(ago=10, category__build=1), counted("", "human"), counted("", "unknown", ago=3),
        counted("", "unknown", ago=4),
    ]  # fmt: skip
    record(cast.cluster, sessions=[agent_session()], minutes=minutes)
    assert services.refresh_activity() == 2  # the colleague's, and the node's
    today, process = clock.now().date(), AgentSession.objects.get().process
    twice = {"commands": 6, "category:text": 4}
    assert sums() == [
        (today, "login1", process, "colleague", "agent", "claude-code", 2, twice | {"category:build": 1}),
        (today, "login1", None, None, "human", "", 1, {"commands": 3, "category:text": 2}),
        (today, "login1", None, None, "unknown", "", 2, twice),
    ]
    assert not ActivityDirty.objects.exists()
    assert services.refresh_activity() == 0


def test_the_order_of_batches_and_their_repetition_change_nothing(cast: Cast):
    batches = [
        {"batch": str(uuid4()), "sessions": [agent_session()], "minutes": [counted(ago=ago), counted("", "human")]}
        for ago in (3, 4, 5)
    ]
    batches.append({"batch": str(uuid4()), "run": str(uuid4()), "sessions": [agent_session()],
                    "minutes": [counted(ago=5)]})  # fmt: skip

    def after(order: list[dict[str, Any]], refresh: Callable[[], object]) -> list[tuple[Any, ...]]:
        ActivityMinute.objects.all().delete()
        ActivityDay.objects.all().delete()
        for each in order:
            record(cast.cluster, **each)
            refresh()
        services.refresh_activity()
        return sums()

    expected = after(batches, lambda: None)
    assert expected[0][-2:] == (3, {"commands": 12, "category:text": 8}), "a minute of two runs is one minute"
    assert after(batches[::-1], services.refresh_activity) == expected
    assert after(batches + batches, services.refresh_activity) == expected


def test_each_session_of_a_day_and_each_day_of_a_session_has_its_row(cast: Cast):
    both = [agent_session(), agent_session(id="900-1", harness="codex", user="pi")]
    record(cast.cluster, sessions=both, minutes=[counted(), counted("900-1")])
    yesterday = minute(60 * 20)
    sent = [counted() | {"minute": yesterday}]
    earlier = {"from": yesterday, "to": minute(60 * 19), "sessions": [agent_session(start=minute(60 * 21))]}
    record(cast.cluster, **earlier, minutes=sent)
    assert services.refresh_activity() == 3
    found = ActivityDay.objects.values_list("day", "cluster_user__login", "harness")
    today = clock.now().date()
    assert set(found) == {
        (today, "colleague", "claude-code"), (today, "pi", "codex"),
        (today - timedelta(days=1), "colleague", "claude-code"),
    }  # fmt: skip


def test_a_change_while_it_is_added_up_leaves_a_mark(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    record(cast.cluster, sessions=[agent_session()], minutes=[counted(ago=9)])
    plain = days._add_up

    def meanwhile(*given: Any) -> list[ActivityDay]:
        rows = plain(*given)
        record(cast.cluster, sessions=[agent_session()], minutes=[counted(ago=8)])
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(days, "_add_up", meanwhile)
        assert services.refresh_activity() == 0
    assert sums() == [] and ActivityDirty.objects.count() == 1
    assert services.refresh_activity() == 1
    assert sums()[0][-2:] == (2, {"commands": 6, "category:text": 4})


def test_whoever_holds_the_lease_does_it(cast: Cast):
    record(cast.cluster, sessions=[agent_session()], minutes=[counted()])
    with leases.held(f"activity:{cast.cluster.name}", seconds=30):
        assert services.refresh_activity() == 0
    assert services.refresh_activity() == 1


def test_a_day_whose_minutes_are_partly_gone_keeps_its_sums(cast: Cast):
    with clock.at(clock.now() - timedelta(days=24)):
        record(cast.cluster, sessions=[agent_session()], minutes=[counted()])
        services.refresh_activity()
        kept = sums()
        record(cast.cluster, sessions=[agent_session()], minutes=[counted(ago=8)])
    with clock.at(clock.now() + timedelta(days=7)):
        services.refresh_activity()
    assert sums() == kept and not ActivityDirty.objects.exists()


def test_the_sums_of_a_session_that_is_gone_stay(cast: Cast):
    record(cast.cluster, sessions=[agent_session(), agent_session(id="900-1")], minutes=[counted(), counted("900-1")])
    services.refresh_activity()
    AgentSession.objects.get(process__endswith="/900-1").delete()
    record(cast.cluster, sessions=[agent_session()], minutes=[counted(ago=8)])
    assert services.refresh_activity() == 1
    found = ActivityDay.objects.order_by("session__process").values_list("session__process", "minutes")
    assert sorted(found, key=str) == [(AgentSession.objects.get().process, 2), (None, 1)]


def test_many_login_names_are_added_up_together(cast: Cast, django_assert_max_num_queries: Any):
    names = [f"many{number}" for number in range(30)]
    sessions = [agent_session(id=f"{100 + at}-1", user=name, harness="codex") for at, name in enumerate(names)]
    record(cast.cluster, sessions=sessions, minutes=[counted(each["id"]) for each in sessions])
    with django_assert_max_num_queries(40):
        assert services.refresh_activity() == 30
    assert ActivityDay.objects.count() == 30


def test_a_day_that_is_added_up_begins_a_new_generation(cast: Cast):
    record(cast.cluster, sessions=[agent_session()], minutes=[counted()])
    before = DataGeneration.objects.get().number
    services.refresh_activity()
    assert DataGeneration.objects.get().number > before


def test_sums_are_seen_by_those_they_are_about_their_agents_labs_and_staff(cast: Cast):
    unregistered = agent_session(id="900-1", harness="codex")
    record(
        cast.cluster, sessions=[agent_session(), unregistered],
        minutes=[counted(AGENT), counted("900-1"), counted("", "human"), counted("", "unknown")],
    )  # fmt: skip
    services.refresh_activity()

    def seen(actor: Any) -> tuple[int, int]:
        return tuple(table.objects.visible_to(actor).count() for table in (ActivityDay, ActivityMinute))  # type: ignore[return-value]

    assert seen(factories.actor_of(cast.staff)) == (4, 4)
    assert seen(factories.actor_of(cast.auditor)) == (4, 4)
    assert seen(factories.actor_of(cast.colleague)) == (2, 2)
    assert seen(factories.actor_of(cast.pi)) == (1, 1), "what no lab registered is no lab's to read"
    assert seen(factories.actor_of(cast.outsider)) == (0, 0)
    from principals.permissions import actor_for_agent, actor_for_service

    row = factories.token_row(factories.make_token(cast.agent))
    assert seen(actor_for_agent(row)) == (1, 1)
    from principals.models import ServiceToken

    factories.make_service_token()
    assert seen(actor_for_service(ServiceToken.objects.get())) == (0, 0)


def test_places_of_a_node_are_added_up_apart_and_a_session_has_its_own(cast: Cast):
    minutes = [
        counted(), counted("", "unknown"), counted("", "unknown") | {"place": "ssh"},
        counted("", "unknown", ago=4) | {"place": "ssh"},
    ]  # fmt: skip
    sent = {"sessions": [agent_session() | {"place": "job", "job": 812}], "minutes": minutes}
    assert record(cast.cluster, batch=str(uuid4()), **sent).rejected == []
    services.refresh_activity()
    found = ActivityDay.objects.order_by("driver", "place").values_list("driver", "place", "minutes")
    assert list(found) == [("agent", "job", 1), ("unknown", "login", 1), ("unknown", "ssh", 2)]
    assert AgentSession.objects.get().raw_job_id == 812
    again = minutes[2:3] * 2
    assert [each.reason for each in record(cast.cluster, minutes=again).rejected] == ["minute_twice"]

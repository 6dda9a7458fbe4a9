"""An array is told of once a second at most, and its last state always: once, whoever tells it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction

from portal.core import clock
from portal.core.models import LiveEvent
from principals.models import Cluster
from telemetry import services, tasks
from telemetry.models import ArrayTold
from telemetry.models.array_news import APART
from telemetry.services.retention import HOOKS_KEPT
from tests import factories
from tests.conftest import Cast
from tests.telemetry.logs import ingest, iso, live_row, text

pytestmark = [pytest.mark.sql]
TASKS, SUBMIT = 30, iso(60)
MINE = {"User": "colleague", "Account": "okafor_lab"}


def task(number: int, state: str) -> bytes:
    return text(live_row(100 + number, state, JobID=f"100_{number}", Submit=SUBMIT, **MINE))


def begin(cluster: Cluster) -> None:
    """An array of which all tasks run, told of a while ago."""
    rows = [live_row(100 + n, "RUNNING", JobID=f"100_{n}", Submit=SUBMIT, **MINE) for n in range(1, TASKS + 1)]
    ingest(cluster, text(*rows))


def facts_told() -> list[tuple[dict[str, int], bool]]:
    payloads = LiveEvent.objects.filter(name="job.array").order_by("id").values_list("payload", flat=True)
    return [(payload["counts"], payload["over"]) for payload in payloads]


@contextmanager
def later(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> Iterator[None]:
    at = clock.now() + by
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: at)
        yield


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All happens within a moment."""
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)


@pytest.mark.django_db
@pytest.mark.usefixtures("at_once")
def test_what_changes_within_a_second_is_one_event_and_then_the_last_state(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(cast.cluster)
    for number in range(1, TASKS + 1):
        ingest(cast.cluster, task(number, "COMPLETED"))
    running = ({"RUNNING": TASKS}, False)
    assert facts_told() == [running]
    assert tasks.tell_owed_arrays() == 0, "the second is not over"
    with later(monkeypatch, APART):
        assert services.tell_owed(cast.cluster) == 1
        assert tasks.tell_owed_arrays() == 0, "nothing is owed any more"
    assert facts_told() == [running, ({"COMPLETED": TASKS}, True)]
    event = LiveEvent.objects.filter(name="job.array").latest("id")
    first = LiveEvent.objects.filter(name="job.array").earliest("id")
    assert event.topics == first.topics and len(event.topics) == 4
    assert {**event.payload, "counts": 0} == {**first.payload, "counts": 0} | {
        "state": "COMPLETED", "over": True, "exit_status": 0, "worst": "completed", "text": "array: 30 completed",
    }  # fmt: skip


@pytest.mark.django_db
@pytest.mark.usefixtures("at_once")
def test_after_a_second_the_next_change_is_told_at_once_and_owes_nothing(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(cast.cluster)
    ingest(cast.cluster, task(1, "COMPLETED"))
    with later(monkeypatch, APART):
        ingest(cast.cluster, task(2, "COMPLETED"))
    assert [counts for counts, _ in facts_told()] == [{"RUNNING": 30}, {"RUNNING": 28, "COMPLETED": 2}]
    with later(monkeypatch, 3 * APART):
        assert services.tell_owed() == 0


@pytest.mark.django_db
@pytest.mark.usefixtures("at_once")
def test_what_was_rolled_back_is_owed_still(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(cast.cluster)
    ingest(cast.cluster, task(1, "FAILED"))
    with later(monkeypatch, APART):
        with pytest.raises(ZeroDivisionError), transaction.atomic():  # as a process that is killed before it commits
            services.tell_owed()
            raise ZeroDivisionError
        assert len(facts_told()) == 1
        assert services.tell_owed() == 1


@pytest.mark.django_db
@pytest.mark.usefixtures("at_once")
def test_a_clock_that_was_ahead_keeps_nobody_silent(cast: Cast) -> None:
    begin(cast.cluster)
    ArrayTold.objects.update(told=clock.now() + timedelta(days=1))
    ingest(cast.cluster, task(1, "COMPLETED"))
    assert len(facts_told()) == 2


@pytest.mark.django_db
@pytest.mark.usefixtures("at_once")
def test_the_row_goes_after_a_week_where_nothing_is_owed(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(cast.cluster)
    with later(monkeypatch, HOOKS_KEPT + APART):
        ArrayTold.objects.update(is_owed=True)
        assert services.prune()["arrays_told"] == 0
        assert services.tell_owed() == 0, "it stands as it was told"
        assert services.prune()["arrays_told"] == 1


def test_a_beat_tells_where_no_reader_does() -> None:
    assert settings.CELERY_BEAT_SCHEDULE["tell-owed-arrays"] == {
        "task": tasks.tell_owed_arrays.name, "schedule": 2.0,
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_many_tell_at_once_while_it_ends_and_each_state_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = factories.make_lab("okafor", pi=factories.make_user())
    cluster = factories.make_cluster()
    factories.make_account(cluster, lab)
    monkeypatch.setattr("telemetry.models.array_news.APART", timedelta(0))  # all may tell at any time
    begin(cluster)
    together = Barrier(4)

    def act(number: int) -> Any:
        try:
            together.wait(timeout=60)
            if number:
                return sum(tasks.tell_owed_arrays() for _ in range(20))
            for each in range(1, TASKS + 1):
                ArrayTold.objects.update(told=clock.now() + timedelta(milliseconds=100 * (each % 2)))
                ingest(cluster, task(each, "COMPLETED"))
        finally:
            connection.close()
        return 0

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(act, range(4)))
    tasks.tell_owed_arrays()
    told = facts_told()
    assert [counts.get("COMPLETED", 0) for counts, _ in told] == sorted({c.get("COMPLETED", 0) for c, _ in told})
    assert told[-1] == ({"COMPLETED": TASKS}, True)
    assert [over for _, over in told].count(True) == 1
    assert not ArrayTold.objects.filter(is_owed=True).exists()

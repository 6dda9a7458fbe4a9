"""The outbox of live events: written with the change, numbered after commit, kept for a week."""

import threading
from datetime import timedelta

import pytest
from django.db import connections, transaction

from portal.core import clock, live
from portal.core.models import LiveEvent, LiveEventTopic


def announce(*names: str, topics: tuple[str, ...] = ("lab:1",)) -> None:
    live.announce(live.News(name=name, topics=topics) for name in names)


@pytest.mark.django_db
def test_an_announcement_has_no_position_until_it_is_numbered() -> None:
    assert live.announce([live.News("job.ended", ("lab:1", "job:a:1"), {"id": 1})]) == 1
    event = LiveEvent.objects.get()
    assert (event.seq, event.topics, event.payload) == (None, ["lab:1", "job:a:1"], {"id": 1})
    assert set(event.topic_rows.values_list("topic", flat=True)) == {"lab:1", "job:a:1"}
    assert live.newest_seq() == 0
    assert live.number_committed() == 1
    assert live.number_committed() == 0
    assert live.newest_seq() == 1


@pytest.mark.django_db
def test_nothing_to_announce_writes_nothing(django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    with django_assert_num_queries(0):
        assert live.announce([]) == 0


@pytest.mark.django_db
def test_a_change_that_is_rolled_back_is_not_told() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        announce("one")
        raise ZeroDivisionError
    assert not LiveEvent.objects.exists()


@pytest.mark.django_db
def test_positions_rise_without_gap_in_chunks() -> None:
    announce(*(f"n{n}" for n in range(7)))
    assert [live.number_committed(limit=3) for _ in range(4)] == [3, 3, 1, 0]
    assert list(LiveEvent.objects.order_by("id").values_list("seq", flat=True)) == list(range(1, 8))


@pytest.mark.django_db
def test_a_row_that_appears_late_comes_after_what_is_numbered() -> None:
    LiveEvent.objects.create(id=50, name="early")
    live.number_committed()
    LiveEvent.objects.create(id=7, name="late")
    live.number_committed()
    assert [event.name for event in live.after(0)] == ["early", "late"]


@pytest.mark.django_db(transaction=True)
def test_sequencers_at_the_same_time_give_each_position_once() -> None:
    announce(*(f"n{n}" for n in range(60)))
    errors: list[BaseException] = []

    def run() -> None:
        try:
            while live.number_committed(limit=5):
                pass
        except BaseException as error:  # noqa: BLE001 - shown by the test's thread
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert sorted(LiveEvent.objects.values_list("seq", flat=True)) == list(range(1, 61))
    assert live.newest_seq() == 60


@pytest.mark.django_db
def test_catching_up_is_scoped_ordered_and_bounded() -> None:
    announce("a1", "a2", topics=("lab:1",))
    announce("b", topics=("lab:2",))
    announce("both", topics=("lab:1", "lab:2"))
    assert live.after(0) == []
    live.number_committed()
    assert [event.name for event in live.after(0)] == ["a1", "a2", "b", "both"]
    assert [event.name for event in live.after(0, topics=["lab:2"])] == ["b", "both"]
    assert [event.name for event in live.after(1, topics=["lab:1", "lab:2"])] == ["a2", "b", "both"]
    assert live.after(0, topics=[]) == []
    assert [event.name for event in live.after(0, limit=1)] == ["a1"]
    assert live.after(4) == []


@pytest.mark.django_db
def test_what_is_past_its_keeping_time_is_deleted_with_its_topics() -> None:
    announce("old", "older", "new")
    live.number_committed()
    LiveEvent.objects.filter(seq__lte=2).update(at=clock.now() - timedelta(days=live.KEPT_DAYS, seconds=1))
    assert live.oldest_kept_seq() == 1
    assert live.prune() == 2
    assert [event.name for event in LiveEvent.objects.all()] == ["new"]
    assert LiveEventTopic.objects.count() == 1
    assert live.oldest_kept_seq() == 3


@pytest.mark.django_db
def test_pruning_takes_from_the_start_only_so_that_a_kept_cursor_missed_nothing() -> None:
    announce("one", "two", "three")
    live.number_committed()
    LiveEvent.objects.filter(seq=2).update(at=clock.now() - timedelta(days=30))
    assert live.prune() == 0
    assert live.oldest_kept_seq() == 1


@pytest.mark.django_db
def test_pruning_everything_leaves_the_position() -> None:
    announce("one", "two")
    live.number_committed()
    LiveEvent.objects.update(at=clock.now() - timedelta(days=30))
    assert live.prune() == 2
    assert (live.newest_seq(), live.oldest_kept_seq()) == (2, 3)


@pytest.mark.django_db
def test_an_event_without_a_position_is_never_pruned() -> None:
    announce("one")
    LiveEvent.objects.update(at=clock.now() - timedelta(days=30))
    assert live.prune() == 0


def test_news_is_what_happened_in_the_last_quarter_of_an_hour() -> None:
    assert live.is_news(clock.now() - timedelta(minutes=14))
    assert not live.is_news(clock.now() - timedelta(minutes=16))


@pytest.mark.django_db
def test_a_nudge_follows_the_commit_and_its_failure_harms_nobody(
    django_capture_on_commit_callbacks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # type: ignore[no-untyped-def]
    nudges: list[int] = []
    monkeypatch.setattr(live, "nudge", lambda: nudges.append(1))
    with django_capture_on_commit_callbacks() as callbacks:
        announce("one", "two")
    assert nudges == []
    assert len(callbacks) == 1
    callbacks[0]()
    assert nudges == [1]

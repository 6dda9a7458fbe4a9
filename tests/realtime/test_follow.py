"""Following the table: each row once, in order, late commits included, whatever the number of listeners."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, connections, transaction
from django.db.backends.utils import CursorWrapper

from portal.core import leases, live
from portal.core.errors import NotAllowed
from portal.core.models import LiveEvent
from portal.realtime import sequencer, tail, tasks
from portal.realtime.listeners import BACKLOG, TURN, Listener
from portal.realtime.stream import Event
from portal.realtime.viewers import Viewer
from principals.actors import SYSTEM_ACTOR
from tests.realtime.conftest import PATIENCE_S, announce, tell

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]


@contextlib.contextmanager
def counted_queries() -> Iterator[Callable[[], int]]:
    """Count the statements of every thread that touch live events."""
    seen: list[str] = []
    execute = CursorWrapper.execute

    def count(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        if "core_live" in str(sql):
            seen.append(str(sql))
        return execute(self, sql, params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", count)
        yield lambda: len(seen)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


def _viewer(number: int) -> Viewer:
    return Viewer(f"test:{number}", f"user:{number}", lambda: SYSTEM_ACTOR)


async def _queries_with(listeners: int) -> int:
    """Let so many listen, tell 20 things in one transaction, and count the statements that follow it."""
    current = tail.of_this_process()
    async with contextlib.AsyncExitStack() as stack:
        heard = [
            await stack.enter_async_context(current.listening(_viewer(n), ["test-all:x"])) for n in range(listeners)
        ]
        await tell(*(f"n{n}" for n in range(20)), topics=("test-all:x",))
        with counted_queries() as queries:
            start = current.steps
            await _until(lambda: all(len(listener.waiting) == 20 for listener in heard))
            await _until(lambda: current.steps >= start + 10)
            return round(queries() / (current.steps - start))


async def test_two_hundred_listeners_cost_the_queries_of_one() -> None:
    one = await _queries_with(1)
    many = await _queries_with(200)
    assert one == many > 0


async def test_each_row_is_read_once_whatever_the_number_of_listeners() -> None:
    current = tail.of_this_process()
    async with contextlib.AsyncExitStack() as stack:
        heard = [await stack.enter_async_context(current.listening(_viewer(n), ["test-all:x"])) for n in range(200)]
        await tell(*(f"n{n}" for n in range(20)), topics=("test-all:x",))
        await _until(lambda: all(len(listener.waiting) == 20 for listener in heard))
        assert current.rows_read == 20


@pytest.mark.skipif(connection.vendor == "sqlite", reason="on SQLite, with its one writer, no commit overtakes another")
async def test_a_transaction_that_commits_late_is_not_skipped() -> None:
    written, release = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow() -> None:
        with transaction.atomic():
            announce("late", topics=("test-all:x",))
            loop.call_soon_threadsafe(written.set)
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)
        connections.close_all()

    async with tail.of_this_process().listening(_viewer(1), ["test-all:x"]) as listener:
        writer = asyncio.create_task(asyncio.to_thread(slow))
        await written.wait()
        await tell("early", topics=("test-all:x",))  # a higher id, committed first
        await _until(lambda: len(listener.waiting) == 1)
        release.set()
        await writer
        await _until(lambda: len(listener.waiting) == 2)
        names = [(event.seq, event.name) for event in listener.waiting]
        assert names == [(1, "early"), (2, "late")]
    late = await LiveEvent.objects.aget(name="late")
    early = await LiveEvent.objects.aget(name="early")
    assert late.pk < early.pk


async def test_a_row_that_appears_below_a_numbered_one_is_told_after_it() -> None:
    """The same promise on a database with one writer: ids out of the order of appearance."""
    async with tail.of_this_process().listening(_viewer(1), ["test-all:x"]) as listener:
        await LiveEvent.objects.acreate(id=50, name="early", topics=["test-all:x"])
        await _until(lambda: len(listener.waiting) == 1)
        await LiveEvent.objects.acreate(id=7, name="late", topics=["test-all:x"])
        await _until(lambda: len(listener.waiting) == 2)
        assert [event.name for event in listener.waiting] == ["early", "late"]


async def test_a_database_that_fails_for_a_while_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tail.of_this_process().listening(_viewer(1), ["test-all:x"]) as listener:
        answered, failed = live.after, []

        def fail(*args: Any, **kwargs: Any) -> Any:
            if len(failed) < 2:
                failed.append(1)
                raise OperationalError("the database went away")
            return answered(*args, **kwargs)

        monkeypatch.setattr(live, "after", fail)
        await tell("news", topics=("test-all:x",))
        await _until(lambda: len(listener.waiting) == 1)
        assert len(failed) == 2


async def test_a_process_without_the_lease_does_not_number_and_still_reads() -> None:
    await sync_to_async(leases.take)(sequencer.LEASE, "another process", seconds=60)
    current = tail.of_this_process()
    async with current.listening(_viewer(1), ["test-all:x"]) as listener:
        await tell("news", topics=("test-all:x",))
        start = current.steps
        await _until(lambda: current.steps >= start + 3)
        assert not listener.waiting
        await sync_to_async(live.number_committed)()
        await _until(lambda: len(listener.waiting) == 1)


async def test_what_was_told_while_nobody_listened_is_no_news_to_the_first_who_does() -> None:
    await tell("old", topics=("test-all:x",))
    async with tail.of_this_process().listening(_viewer(1), ["test-all:x"]) as listener:
        assert listener.cursor == 1
        await tell("new", topics=("test-all:x",))
        await _until(lambda: len(listener.waiting) == 1)
        assert listener.waiting[0].name == "new"


async def test_the_tail_ends_when_nobody_listens_and_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "LINGER_S", 0.0)
    current = tail.of_this_process()
    async with current.listening(_viewer(1), ["test-all:x"]):
        first = current._task
    assert first is not None
    await asyncio.wait_for(first, PATIENCE_S)
    await tell("meanwhile", topics=("test-all:x",))
    async with current.listening(_viewer(1), ["test-all:x"]) as listener:
        await tell("then", topics=("test-all:x",))
        await _until(lambda: len(listener.waiting) == 1)
        assert [event.seq for event in listener.waiting] == [2]


def test_the_beat_task_numbers_while_nobody_listens() -> None:
    announce("one", "two", topics=("test-all:x",))
    assert tasks.number_live_events() == 2
    assert tasks.number_live_events() == 0
    assert list(LiveEvent.objects.order_by("seq").values_list("name", flat=True)) == ["one", "two"]


def test_a_listener_that_was_ended_says_why() -> None:
    from portal.realtime.listeners import Listener

    listener = Listener(_viewer(1), ["test-all:x"])
    listener.require_right()
    listener.end(NotAllowed("gone"))
    with pytest.raises(NotAllowed, match="gone"):
        listener.require_right()


async def test_a_long_backlog_gives_others_their_turn() -> None:
    """Nothing in sending to a socket that takes all waits: a thousand events would hold up everybody."""
    listener = Listener(_viewer(1), ["test-all:x"])
    for seq in range(1, BACKLOG + 1):
        listener.offer(Event(seq, "n", "", ("test-all:x",), {}))
    others = asyncio.create_task(asyncio.sleep(0))
    while not others.done():
        await listener.wait()
        assert listener.next() is not None
    assert len(listener.waiting) >= BACKLOG - 3 * TURN

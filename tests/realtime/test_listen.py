"""Listening on the WebSocket: who is let in, what is heard, what is not."""

import asyncio
import re

import pytest
from asgiref.sync import sync_to_async

from portal.core import live
from portal.realtime import consumer, listeners, tail
from tests import factories
from tests.conftest import Cast
from tests.realtime.conftest import Socket, Sockets, cookie_of, number, tell

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]
make_token = sync_to_async(factories.make_token)


async def test_a_person_hears_news_of_their_lab_and_only_the_topics_they_asked_for(
    cast: Cast, sockets: Sockets
) -> None:
    socket = await sockets.open(cookie=await cookie_of(cast.colleague))
    hello = await socket.next()
    lab = cast.lab.pk
    own = {f"agent:{cast.agent.pk}", f"test-lab:{lab}", f"lab:{lab}", f"user:{cast.colleague.pk}"}
    assert (hello["seq"], own - set(hello["topics"])) == (0, set())
    assert "test-all:x" not in hello["topics"]
    await tell("job.ended", topics=(f"test-lab:{cast.lab.pk}", "test-all:x"))
    event = await socket.next()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", event.pop("at"))
    assert event == {
        "type": "event", "seq": 1, "name": "job.ended", "topics": [f"test-lab:{cast.lab.pk}"],
        "payload": {"name": "job.ended"},
    }  # fmt: skip


async def test_an_outsider_hears_nothing(cast: Cast, sockets: Sockets) -> None:
    outsider = await sockets.listen(cookie=await cookie_of(cast.outsider))
    colleague = await sockets.listen(cookie=await cookie_of(cast.colleague))
    await tell("job.ended", topics=(f"test-lab:{cast.lab.pk}",))
    assert await colleague.next_events(1) == ["job.ended"]
    assert await outsider.receive_nothing(0.3)


async def test_an_event_of_several_topics_is_heard_once(cast: Cast, sockets: Sockets) -> None:
    socket = await sockets.listen(f"topics=test-lab:{cast.lab.pk},test-all:x", cookie=await cookie_of(cast.staff))
    await tell("first", "second", topics=(f"test-lab:{cast.lab.pk}", "test-all:x"))
    assert await socket.next_events(2) == ["first", "second"]


async def test_an_agent_is_let_in_by_its_token_without_an_origin(cast: Cast, sockets: Sockets) -> None:
    socket = await sockets.listen(token=await make_token(cast.agent))
    await tell("job.ended", topics=(f"test-lab:{cast.lab.pk}",))
    assert await socket.next_events(1) == ["job.ended"]


async def test_a_token_beats_a_cookie_so_that_no_foreign_page_can_use_the_cookie(cast: Cast, sockets: Sockets) -> None:
    socket = await sockets.open(token="nonsense", cookie=await cookie_of(cast.staff))
    assert (await socket.next())["code"] == 4401


async def test_nobody_signed_in_is_refused_with_4401_and_what_to_do(db: None, sockets: Sockets) -> None:
    for cookie in ("", "n0such5ess10n"):
        socket = await sockets.open(cookie=cookie)
        closed = await socket.next()
        assert (closed["type"], closed["code"]) == ("closed", 4401)
        assert closed["remedy"]
        assert await socket.close_code() == 4401


async def test_a_token_without_the_scope_is_refused_with_4403(cast: Cast, sockets: Sockets) -> None:
    socket = await sockets.open(token=await make_token(cast.agent, "me:read"))
    assert (await socket.next())["code"] == 4403
    assert await socket.close_code() == 4403


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("topics=test-all:x", 4403),
        ("topics=no-such-kind:1", 4404),
        ("topics=nonsense", 4422),
        ("after=minus-one", 4422),
        (f"after={'9' * 5000}", 4422),
        ("topics=" + ",".join(f"test-lab:{n}" for n in range(101)), 4422),
    ],
)
async def test_what_may_not_be_heard_is_refused_with_its_code(
    cast: Cast, sockets: Sockets, query: str, code: int
) -> None:
    socket = await sockets.open(query, cookie=await cookie_of(cast.colleague))
    closed = await socket.next()
    assert (closed["type"], closed["code"]) == ("closed", code)
    assert await socket.close_code() == code


async def test_a_page_of_another_site_is_refused_before_the_handshake(cast: Cast) -> None:
    cookie = await cookie_of(cast.staff)
    for origin in (b"https://evil.example", b""):
        headers = [(b"cookie", f"sessionid={cookie}".encode()), (b"origin", origin)]
        accepted, _ = await Socket("/ws/events/", headers).connect()
        assert not accepted


async def test_there_is_no_socket_at_another_address() -> None:
    accepted, code = await Socket("/ws/other/", []).connect()
    assert (accepted, code) == (False, 4404)


async def test_one_principal_has_a_limited_number_of_sockets(
    cast: Cast, sockets: Sockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "PER_PRINCIPAL", 2)
    cookie, other = await cookie_of(cast.staff), await cookie_of(cast.staff)
    first = await sockets.listen(cookie=cookie)
    await sockets.listen(cookie=other)
    refused = await sockets.open(cookie=cookie)
    assert (await refused.next())["code"] == 4429
    await sockets.listen(cookie=await cookie_of(cast.infosec))
    await first.disconnect()
    sockets.opened.remove(first)
    await sockets.listen(cookie=cookie)


async def test_topics_are_added_and_dropped_on_an_open_socket(cast: Cast, sockets: Sockets) -> None:
    socket = await sockets.listen("topics=test-all:x", cookie=await cookie_of(cast.staff))
    lab = f"test-lab:{cast.lab.pk}"
    await socket.say({"type": "subscribe", "topics": [lab]})
    assert await socket.next() == {"type": "subscribed", "seq": 0, "topics": sorted([lab, "test-all:x"])}
    await socket.say({"type": "unsubscribe", "topics": ["test-all:x", "test-all:never-heard"]})
    assert (await socket.next())["topics"] == [lab]
    await tell("everywhere", topics=("test-all:x",))
    await tell("in.lab", topics=(lab,))
    assert await socket.next_events(1) == ["in.lab"]
    await socket.say({"type": "ping"})
    assert await socket.next() == {"type": "pong", "seq": 2}


async def test_a_topic_that_may_not_be_heard_is_not_added(cast: Cast, sockets: Sockets) -> None:
    socket = await sockets.listen(cookie=await cookie_of(cast.colleague))
    await socket.say({"type": "subscribe", "topics": ["test-all:x"]})
    answer = await socket.next()
    assert (answer["type"], answer["code"]) == ("error", "topic_not_allowed")
    await tell("secret", topics=("test-all:x",))
    assert await socket.receive_nothing(0.3)


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "7", "null", '"ping"', '{"type": []}', '{"type": "shout"}', '{"type": "subscribe"}',
        '{"type": "subscribe", "topics": "a:b"}', '{"type": "subscribe", "topics": [1]}', "[" * 10_000,
        "x" * 20_000,
    ],
)  # fmt: skip
async def test_a_malformed_message_is_answered_and_the_socket_stays(cast: Cast, sockets: Sockets, text: str) -> None:
    socket = await sockets.listen(cookie=await cookie_of(cast.staff))
    await socket.say_raw(text=text)
    answer = await socket.next()
    assert answer["type"] == "error"
    assert answer["code"] in {"message_malformed", "message_too_large"}
    await socket.say_raw(bytes=b"\x00\xff")
    assert (await socket.next())["type"] == "error"
    await socket.say({"type": "ping"})
    assert (await socket.next())["type"] == "pong"


async def test_a_client_comes_back_at_its_cursor_without_gap_or_repeat(cast: Cast, sockets: Sockets) -> None:
    lab = f"test-lab:{cast.lab.pk}"
    names = [f"n{n}" for n in range(450)]  # more than two pages
    await tell(*names, topics=(lab,))
    await tell("foreign", topics=(f"test-lab:{cast.other_lab.pk}",))
    await number()
    socket = await sockets.open("after=3", cookie=await cookie_of(cast.colleague))
    assert (await socket.next())["seq"] == 3
    assert await socket.next_events(447) == names[3:]
    assert await socket.next() == {"type": "caught_up", "seq": 451}
    await tell("new", topics=(lab,))
    assert await socket.next_events(1) == ["new"]


async def test_events_told_while_catching_up_follow_in_order(cast: Cast, sockets: Sockets) -> None:
    lab = f"test-lab:{cast.lab.pk}"
    await tell(*(f"old{n}" for n in range(250)), topics=(lab,))
    cookie = await cookie_of(cast.colleague)
    keep_telling = asyncio.create_task(tell(*(f"new{n}" for n in range(50)), topics=(lab,)))
    socket = await sockets.listen("after=0", cookie=cookie)
    await keep_telling
    messages = [await socket.next() for _ in range(301)]
    assert [m["seq"] for m in messages if m["type"] == "event"] == list(range(1, 301))


async def test_a_cursor_ahead_of_this_process_is_believed_and_nothing_repeats(cast: Cast, sockets: Sockets) -> None:
    lab = f"test-lab:{cast.lab.pk}"
    cookie = await cookie_of(cast.colleague)
    await sockets.listen(cookie=cookie)  # the tail stands at 0
    current = tail.of_this_process()
    await tell("one", "two", topics=(lab,))
    while current.position < 2:
        await asyncio.sleep(0.01)
    current.position = 1  # as a tail that has not read the second row yet
    socket = await sockets.open("after=2", cookie=cookie)
    assert (await socket.next())["seq"] == 2
    assert (await socket.next())["type"] == "caught_up"
    await tell("three", topics=(lab,))
    assert await socket.next_events(1) == ["three"]


@pytest.mark.parametrize("after", [0, 99])
async def test_a_cursor_that_is_not_kept_must_resync(cast: Cast, sockets: Sockets, after: int) -> None:
    lab = f"test-lab:{cast.lab.pk}"
    await tell("one", "two", topics=(lab,))
    await number()
    await sync_to_async(live.LiveEvent.objects.filter(seq=1).delete)()
    socket = await sockets.open(f"after={after}", cookie=await cookie_of(cast.colleague))
    assert (await socket.next())["seq"] == 2
    assert await socket.next() == {"type": "resync", "seq": 2}


async def test_a_slow_client_loses_its_backlog_and_is_told_while_others_lose_nothing(
    cast: Cast, sockets: Sockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "BACKLOG", 10)
    gate = asyncio.Event()
    sent = consumer.EventsConsumer.send
    slow_cookie = await cookie_of(cast.staff)

    async def held_back(self, text_data):  # type: ignore[no-untyped-def]
        if '"event"' in text_data and self._listener.viewer.session_key == slow_cookie:
            await gate.wait()
        await sent(self, text_data)

    monkeypatch.setattr(consumer.EventsConsumer, "send", held_back)
    slow = await sockets.listen(cookie=slow_cookie)
    quick = await sockets.listen(cookie=await cookie_of(cast.infosec))
    for n in range(30):
        await tell(f"n{n}", topics=("test-all:x",))
        assert await quick.next_events(1) == [f"n{n}"]
    gate.set()
    heard = [await slow.next()]
    while heard[-1]["type"] == "event":
        heard.append(await slow.next())
    assert heard[-1] == {"type": "resync", "seq": 30}
    assert len(heard) <= 12
    await tell("after", topics=("test-all:x",))
    assert (await slow.next())["seq"] == 31

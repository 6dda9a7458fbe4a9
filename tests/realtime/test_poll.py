"""Long-poll: events at once or after a wait, for tokens and for browsers."""

import asyncio
import time
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connection
from django.test import AsyncClient

from portal.core import live
from portal.core.models import LiveEvent
from portal.realtime import listeners, longpoll, tail
from principals.models import AgentToken
from principals.services.tokens import issuing as token_services
from tests import factories
from tests.conftest import Api, Cast, sign_in
from tests.realtime.conftest import PATIENCE_S, announce, tell

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]


class Waiter:
    """The agent's asynchronous client, so that a test can act while a request waits."""

    def __init__(self, token: str) -> None:
        self._client, self._headers = AsyncClient(), {"authorization": f"Bearer {token}"}

    async def get(self, **query: object) -> Any:
        async with ThreadSensitiveContext():  # a thread of its own, as the ASGI handler gives each request
            return await self._client.get("/api/v1/events", query, headers=self._headers)


@pytest.fixture
async def agent(cast: Cast) -> Waiter:
    return Waiter(await sync_to_async(factories.make_token)(cast.agent))


def _events(answer: dict[str, Any]) -> list[tuple[int, str]]:
    return [(event["seq"], event["name"]) for event in answer["events"]]


def test_without_a_cursor_only_the_position_is_told(cast: Cast, agent_api: Api) -> None:
    announce("one", "two", topics=(f"test-lab:{cast.lab.pk}",))
    assert agent_api.get("/events").json() == {"events": [], "next": 2, "resync": False}


def test_what_lies_past_the_cursor_comes_at_once_and_only_what_is_ones_own(cast: Cast, agent_api: Api) -> None:
    mine, foreign = f"test-lab:{cast.lab.pk}", f"test-lab:{cast.other_lab.pk}"
    announce("one", topics=(mine,))
    announce("secret", topics=(foreign,))
    announce("two", topics=(mine, foreign))
    announce("secret", topics=(foreign,))
    started = time.monotonic()
    answer = agent_api.get("/events", after=0, wait=20).json()
    assert time.monotonic() - started < 5
    assert _events(answer) == [(1, "one"), (3, "two")]
    assert {topic for event in answer["events"] for topic in event["topics"]} == {mine}
    assert (answer["next"], answer["resync"]) == (4, False)


def test_a_long_backlog_comes_in_pages_without_gap(cast: Cast, agent_api: Api) -> None:
    announce(*(f"n{n}" for n in range(450)), topics=(f"test-lab:{cast.lab.pk}",))
    cursor, seen = 0, []
    for _ in range(3):
        answer = agent_api.get("/events", after=cursor).json()
        seen += [event["seq"] for event in answer["events"]]
        cursor = answer["next"]
    assert seen == list(range(1, 451))
    assert cursor == 450


async def test_a_waiting_request_is_answered_by_the_first_event(cast: Cast, agent: Waiter) -> None:
    waiting = asyncio.create_task(agent.get(after=0, wait=20))
    current = tail.of_this_process()
    async with asyncio.timeout(PATIENCE_S):
        while len(current.listeners) == 0:
            await asyncio.sleep(0.01)
    await tell("foreign", topics=(f"test-lab:{cast.other_lab.pk}",))
    await tell("news", topics=(f"test-lab:{cast.lab.pk}",))
    answer = (await asyncio.wait_for(waiting, PATIENCE_S)).json()
    assert _events(answer) == [(2, "news")]
    assert answer["next"] == 2
    assert len(current.listeners) == 0


async def test_a_wait_without_news_moves_the_cursor_past_what_was_not_ones_own(cast: Cast, agent: Waiter) -> None:
    await tell("foreign", topics=(f"test-lab:{cast.other_lab.pk}",))
    answer = (await agent.get(after=0, wait=0.3)).json()
    assert answer == {"events": [], "next": 1, "resync": False}


async def test_a_token_revoked_while_waiting_ends_the_wait(cast: Cast, agent: Waiter) -> None:
    waiting = asyncio.create_task(agent.get(after=0, wait=30, topics=f"test-lab:{cast.lab.pk}"))
    async with asyncio.timeout(PATIENCE_S):
        while len(tail.of_this_process().listeners) == 0:
            await asyncio.sleep(0.01)
    token = await AgentToken.objects.select_related("agent").aget(agent=cast.agent)
    actor = await sync_to_async(factories.actor_of)(cast.pi)
    await sync_to_async(token_services.revoke_agent_token)(actor=actor, token=token)
    response = await asyncio.wait_for(waiting, PATIENCE_S)
    assert (response.status_code, response.json()["code"]) == (401, "token_revoked")


async def test_a_cursor_that_is_not_kept_must_resync(cast: Cast, agent: Waiter) -> None:
    await tell("one", "two", topics=(f"test-lab:{cast.lab.pk}",))
    await sync_to_async(live.number_committed)()
    await LiveEvent.objects.filter(seq=1).adelete()
    for after in (0, 77):
        answer = (await agent.get(after=after, wait=20)).json()
        assert answer == {"events": [], "next": 2, "resync": True}


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"topics": "test-all:x"}, 403, "topic_not_allowed"),
        ({"topics": "no-such-kind:1"}, 404, "topic_unknown"),
        ({"topics": "nonsense"}, 422, "topic_malformed"),
        ({"after": "-1"}, 422, "invalid"),
        ({"after": "9" * 24}, 422, "invalid"),
        ({"wait": "31"}, 422, "invalid"),
        ({"wait": "nan"}, 422, "invalid"),
    ],
)
def test_a_refusal_is_a_problem_with_its_code(
    cast: Cast, agent_api: Api, query: dict[str, str], status: int, code: str
) -> None:
    response = agent_api.get("/events", **query)
    assert response.headers["Content-Type"] == "application/problem+json"
    assert (response.status_code, response.json()["code"]) == (status, code)


def test_no_token_and_a_token_without_the_scope_are_refused(cast: Cast) -> None:
    assert Api("").get("/events").status_code == 401
    refused = Api(factories.make_token(cast.agent, "me:read")).get("/events")
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")


def test_too_many_waiting_requests_of_one_principal_are_told_when_to_come_back(
    cast: Cast, agent_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "PER_PRINCIPAL", 0)
    response = agent_api.get("/events")
    assert (response.status_code, response.json()["code"]) == (429, "too_many_listeners")
    assert response.headers["Retry-After"] == "5"


def test_a_browser_polls_with_its_session(cast: Cast) -> None:
    lab = f"test-lab:{cast.lab.pk}"
    announce("news", topics=(lab,))
    answer = sign_in(cast.colleague).get("/live/events/", {"after": 0, "wait": 5}).json()
    assert _events(answer) == [(1, "news")]
    assert sign_in(cast.outsider).get("/live/events/", {"after": 0}).json() == {
        "events": [],
        "next": 1,
        "resync": False,
    }
    anonymous = sign_in(None).get("/live/events/")
    assert (anonymous.status_code, anonymous.json()["code"]) == (401, "unauthenticated")
    assert sign_in(cast.outsider).get("/live/events/", {"topics": lab}).status_code == 403
    for wrong in ({"wait": "-1"}, {"wait": "99"}, {"wait": "9" * 5000}, {"after": "x"}):
        assert sign_in(cast.colleague).get("/live/events/", wrong).status_code == 422
    assert sign_in(cast.colleague).post("/live/events/").status_code == 405


async def test_a_waiting_request_holds_no_database_connection(agent: Waiter, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[object] = []

    async def look(*args: object) -> list[object]:
        held.append(await sync_to_async(lambda: connection.connection)())
        return []

    monkeypatch.setattr(longpoll, "_wait", look)
    assert (await agent.get(after=0, wait=30)).status_code == 200
    assert held == [None]

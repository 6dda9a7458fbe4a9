"""Harnesses read what is admitted, by digest, and agents submit what should be."""

import pytest

from policies.models import ExtensionRelease
from portal.core import clock
from tests import factories
from tests.conftest import Api, Cast
from tests.policies import worlds

BODY = {
    "kind": "mcp_server", "identity": "okafor/mdtools-mcp", "version": "1.0.0", "digest": worlds.DIGEST,
    "capabilities": ["fs.read"],
}  # fmt: skip


@pytest.fixture
def submitter(cast: Cast) -> Api:
    return Api(factories.make_token(cast.agent, "extensions:submit", "extensions:read"))


def _admitted(cast: Cast, number: int, **fields: object) -> ExtensionRelease:
    decided = {"state": "admitted", "decided_by": cast.staff, "decided_at": clock.now()}
    return worlds.make_release(cast.pi, version=f"1.{number}", **(decided | fields))


def test_the_list_holds_what_is_admitted_and_nothing_else(cast: Cast, agent_api: Api) -> None:
    plain = _admitted(cast, 1)
    bound = _admitted(cast, 2, state="admitted_with_conditions", conditions="Only in the sandbox.")
    for number, state in enumerate(["queued", "denied", "revoked"], start=3):
        _admitted(cast, number, state=state)
    items = agent_api.get("/extensions").json()["items"]
    assert [item["id"] for item in items] == [bound.pk, plain.pk]
    assert items[0]["conditions"] == "Only in the sandbox."
    assert (items[1]["digest"], items[1]["capabilities"]) == (worlds.DIGEST, ["fs.read"])
    assert '"pi"' not in str(items)


def test_the_list_pages_by_cursor(cast: Cast, agent_api: Api) -> None:
    rows = [_admitted(cast, number).pk for number in range(5)]
    first = agent_api.get("/extensions", limit=2).json()
    second = agent_api.get("/extensions", limit=200, after=first["next"]).json()
    assert [item["id"] for item in first["items"] + second["items"]] == rows[::-1]
    assert second["next"] is None


def test_an_agent_submits_and_follows_its_submission(cast: Cast, submitter: Api) -> None:
    answer = submitter.post("/extensions", BODY)
    assert answer.status_code == 201
    assert submitter.get(f"/extensions/{answer.json()['id']}").json()["state"] == "queued"
    assert submitter.post("/extensions", BODY).status_code == 409


def test_a_retry_with_its_key_is_harmless(cast: Cast, submitter: Api) -> None:
    first, second = (submitter.post("/extensions", BODY, headers={"idempotency-key": "s"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert ExtensionRelease.objects.count() == 1


def test_reading_does_not_let_submit(cast: Cast, agent_api: Api) -> None:
    assert agent_api.post("/extensions", BODY).json()["code"] == "scope_missing"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "theme"}, {"identity": "A B"}, {"identity": "a\x00"}, {"version": "latest"}, {"digest": "md5:1"},
        {"capabilities": "fs.read"}, {"capabilities": ["fly"]}, {"capabilities": ["fs.read"] * 41},
        {"description": "x" * 4001},
    ],
)  # fmt: skip
def test_bad_input_answers_422(cast: Cast, submitter: Api, change: dict[str, object]) -> None:
    assert submitter.post("/extensions", BODY | change).status_code == 422
    assert not ExtensionRelease.objects.exists()


def test_what_is_not_to_be_seen_is_not_found(cast: Cast, agent_api: Api) -> None:
    queued = worlds.make_release(cast.pi)
    for number in (queued.pk, 0, -1, 2**70):
        assert agent_api.get(f"/extensions/{number}").status_code == 404
    assert agent_api.get("/extensions", after=2**70).status_code == 422

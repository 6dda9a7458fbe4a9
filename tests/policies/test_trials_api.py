"""Agents ask for trials over the API and can act on every answer."""

from datetime import datetime, timedelta

import pytest

from policies.models import TrialGrant, TrialRefusal
from portal.core import clock
from tests import factories
from tests.conftest import Api, Cast
from tests.policies import worlds


def test_a_grant_answers_201_with_what_to_submit_and_what_is_left(cast: Cast, agent_api: Api) -> None:
    answer = agent_api.post("/trials", {"minutes": 10, "gpus": 1, "purpose": "Does it start?"})
    assert answer.status_code == 201
    body = answer.json()
    assert f"--comment={body['id']}" in body["sbatch_options"]
    assert (body["budget"]["trials_used"], body["budget"]["trials_left"]) == (1, 29)
    assert body["budget"]["gpu_minutes_left"] == 350
    granted, returns = (datetime.fromisoformat(body[name]) for name in ("granted_at", "returns_at"))
    assert returns - granted == timedelta(days=1)


def test_a_spent_budget_answers_429_with_every_reason_and_when_it_returns(
    cast: Cast, agent_api: Api, standing_clock: None
) -> None:
    worlds.set_limits(person_trials=1, lab_trials=1)
    agent_api.post("/trials", {"minutes": 5})
    answer = agent_api.post("/trials", {"minutes": 5})
    body = answer.json()
    assert (answer.status_code, body["code"]) == (429, "trial_budget_spent")
    assert [reason["code"] for reason in body["reasons"]] == ["trials_spent", "lab_trials_spent"]
    assert all(reason["sentence"] and reason["remedy"] for reason in body["reasons"])
    back = datetime.fromisoformat(body["returns_at"]) - clock.now()
    assert 86_400 <= back.total_seconds() < 86_400.001
    assert int(answer["Retry-After"]) in (86_400, 86_401)  # whole seconds, never too early


def test_a_request_that_is_too_large_answers_422_and_waiting_is_not_advised(cast: Cast, agent_api: Api) -> None:
    answer = agent_api.post("/trials", {"minutes": 600, "gpus": 8})
    assert (answer.status_code, answer.json()["code"]) == (422, "trial_too_large")
    assert answer.json()["returns_at"] is None
    assert "Retry-After" not in answer


def test_a_retry_with_its_key_gets_the_same_grant_and_spends_once(cast: Cast, agent_api: Api) -> None:
    first, second = (
        agent_api.post("/trials", {"minutes": 5}, headers={"idempotency-key": "k-1"}) for _ in range(2)
    )  # fmt: skip
    assert first.json()["id"] == second.json()["id"]
    assert second["Idempotency-Replayed"] == "true"
    assert TrialGrant.objects.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        {}, {"minutes": "ten"}, {"minutes": 0}, {"minutes": -5}, {"minutes": 10**12}, {"minutes": 5, "nodes": 0},
        {"minutes": 5, "gpus": 1.5}, {"minutes": 5, "cluster": "a\x00b"}, {"minutes": 5, "cluster": "nowhere"},
        {"minutes": 5, "purpose": "x" * 501}, [],
    ],
)  # fmt: skip
def test_bad_input_answers_422_and_leaves_nothing(cast: Cast, agent_api: Api, body: object) -> None:
    answer = agent_api.post("/trials", body)
    assert answer.status_code == 422
    assert answer["Content-Type"] == "application/problem+json"
    assert not TrialGrant.objects.exists()
    assert not TrialRefusal.objects.exists()


@pytest.mark.parametrize("purpose", ["\x00", "\ud800", "‮abc"])
def test_odd_characters_in_a_purpose_do_no_harm(cast: Cast, agent_api: Api, purpose: str) -> None:
    assert agent_api.post("/trials", {"minutes": 5, "purpose": purpose}).status_code in {201, 422}


def test_without_the_scope_it_is_refused_with_a_remedy(cast: Cast) -> None:
    answer = Api(factories.make_token(cast.agent, "me:read")).post("/trials", {"minutes": 5})
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


def test_the_list_pages_by_cursor_and_holds_the_owners_trials_of_this_lab_only(cast: Cast, agent_api: Api) -> None:
    own = [worlds.make_trial(cast).public_id for _ in range(5)]
    worlds.make_trial(cast, cast.pi)
    worlds.make_trial(cast, lab=cast.other_lab)
    first = agent_api.get("/trials", limit=3).json()
    second = agent_api.get("/trials", limit=3, after=first["next"]).json()
    assert [trial["id"] for trial in first["items"] + second["items"]] == own[::-1]
    assert second["next"] is None


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 201}, {"after": "'; --"}])
def test_bad_paging_answers_422(agent_api: Api, query: dict[str, object]) -> None:
    assert agent_api.get("/trials", **query).status_code == 422


def test_anothers_trial_is_not_found(cast: Cast, agent_api: Api) -> None:
    foreign = worlds.make_trial(cast, cast.outsider, cast.other_lab)
    for path in (f"/trials/{foreign.public_id}", "/trials/trl_none", "/trials/%00"):
        assert agent_api.get(path).status_code == 404
    assert agent_api.post(f"/trials/{foreign.public_id}/cancel").status_code == 404
    assert agent_api.get("/trials", after=foreign.public_id).status_code == 404


def test_it_gives_a_trial_back(cast: Cast, agent_api: Api) -> None:
    trial = agent_api.post("/trials", {"minutes": 5}).json()["id"]
    assert agent_api.post(f"/trials/{trial}/cancel").json()["state"] == "cancelled"
    assert agent_api.post(f"/trials/{trial}/cancel").status_code == 409
    assert agent_api.get("/trials/budget").json()["trials_used"] == 0


def test_a_retry_of_giving_back_is_told_the_same(cast: Cast, agent_api: Api) -> None:
    trial = agent_api.post("/trials", {"minutes": 5}).json()["id"]
    answers = [agent_api.post(f"/trials/{trial}/cancel", headers={"idempotency-key": "c-1"}) for _ in range(2)]
    assert [answer.json()["state"] for answer in answers] == ["cancelled", "cancelled"]


def test_me_says_what_is_left(cast: Cast, agent_api: Api) -> None:
    agent_api.post("/trials", {"minutes": 5})
    limits = agent_api.get("/me").json()["limits"]
    assert limits["trials"]["trials_left"] == 29
    assert limits["requests_per_minute"] > 0


def test_no_answer_names_another_person(cast: Cast, agent_api: Api) -> None:
    worlds.set_limits(lab_trials=1, person_trials=1)
    worlds.make_trial(cast, cast.pi, agent=factories.make_agent(cast.lab, cast.pi, "okafor-secret"))
    answers = [agent_api.post("/trials", {"minutes": 5}), agent_api.get("/trials"), agent_api.get("/trials/budget")]
    for answer in answers:
        text = answer.content.decode()
        assert '"pi"' not in text
        assert "okafor-secret" not in text

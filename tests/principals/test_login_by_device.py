"""Logging in from a laptop (RFC 8628): the code is entered, what asks is seen, and only then there is a token, once."""

from datetime import timedelta
from typing import Any

import pytest

from portal.core import clock
from portal.core.models import AuditEvent
from principals import services as principal_services
from principals import tasks
from principals.engine.device import GRANT_TYPE
from principals.models import AgentToken, DeviceLogin
from tests import factories
from tests.conftest import Api, Cast, sign_in

PAGE = "/login/device/"


def _begin(**said: str) -> Any:
    form = {"client_id": "okafor-docking", "host": "laptop", "scope": "me:read jobs:read"} | said
    return Api("").client.post("/api/v1/login/device", form)


def _ask(begun: dict[str, Any], **said: str) -> Any:
    form = {"grant_type": GRANT_TYPE, "device_code": begun["device_code"], "client_id": "okafor-docking"} | said
    return Api("").client.post("/api/v1/login/token", form)


def _error(answer: Any) -> str:
    """The error of a refusal, which has a sentence and a remedy."""
    body = answer.json()
    assert answer.status_code == 400 and answer["Content-Type"] == "application/problem+json"
    assert body["code"] == body["error"] and body["detail"] == body["error_description"] and body["remedy"]
    return str(body["error"])


def test_it_is_begun_shown_approved_and_answered_once(cast: Cast, standing_clock: None) -> None:
    begun = _begin().json()
    assert begun["verification_uri_complete"].endswith(f"{PAGE}?user_code={begun['user_code']}")
    assert (begun["expires_in"], begun["interval"]) == (600, 5)
    assert _error(_ask(begun)) == "authorization_pending"
    client = sign_in(cast.colleague)
    assert begun["user_code"] in client.get(f"{PAGE}?user_code={begun['user_code']}").content.decode()
    shown = client.post(PAGE, {"user_code": begun["user_code"].lower()}).content.decode()
    assert "okafor-docking" in shown and "laptop" in shown and "read its owner’s jobs" in shown
    assert not AgentToken.objects.exists()
    done = client.post(PAGE, {"user_code": begun["user_code"], "answer": "approve"})
    assert done["Location"] == "/agents/okafor-docking/"
    body = _ask(begun).json()
    assert (body["token_type"], body["scope"], body["expires_in"]) == ("Bearer", "jobs:read me:read", 12 * 3600)
    assert Api(body["access_token"]).get("/me").json()["acts_for"] == "colleague"
    assert AgentToken.objects.get().how == "device"
    assert _error(_ask(begun)) == "invalid_grant"
    assert AgentToken.objects.count() == 1


def test_the_codes_are_kept_nowhere(cast: Cast) -> None:
    begun = _begin().json()
    sign_in(cast.colleague).post(PAGE, {"user_code": begun["user_code"], "answer": "approve"})
    token = _ask(begun).json()["access_token"].split(".")[1]
    kept = str([*DeviceLogin.objects.values_list(), *AuditEvent.objects.values_list()])
    assert not any(secret in kept for secret in (begun["device_code"], begun["user_code"], token))


def test_a_refusal_is_told_and_final(cast: Cast) -> None:
    begun = _begin().json()
    client = sign_in(cast.colleague)
    client.post(PAGE, {"user_code": begun["user_code"], "answer": "refuse"})
    assert _error(_ask(begun)) == "access_denied"
    again = client.post(PAGE, {"user_code": begun["user_code"], "answer": "approve"})
    assert again.status_code == 422 and not AgentToken.objects.exists()
    assert AuditEvent.objects.get(verb="device_login.refused").actor_label == "colleague"


def test_whoever_asks_too_often_is_slowed_down(cast: Cast) -> None:
    begun = _begin().json()
    start = clock.now()
    expected = [(0, "authorization_pending"), (4, "slow_down"), (12, "slow_down"), (27, "authorization_pending")]
    for after_s, error in expected:
        with clock.at(start + timedelta(seconds=after_s)):
            assert _error(_ask(begun)) == error
    assert DeviceLogin.objects.get().interval_s == 15


def test_a_flood_of_questions_makes_the_interval_no_longer_than_the_code_lives(cast: Cast) -> None:
    begun = _begin().json()
    DeviceLogin.objects.update(interval_s=598, last_asked=clock.now())
    answer = _ask(begun)
    assert (_error(answer), answer.json()["interval"]) == ("slow_down", 600)
    assert _ask(begun).json()["interval"] == DeviceLogin.objects.get().interval_s == 600


def test_what_no_login_may_have_is_not_all_that_one_gets(cast: Cast) -> None:
    begun = _begin(scope="token:rotate").json()
    sign_in(cast.colleague).post(PAGE, {"user_code": begun["user_code"], "answer": "approve"})
    assert _error(_ask(begun)) == "access_denied" and not AgentToken.objects.exists()


def test_a_code_ends_after_ten_minutes(cast: Cast) -> None:
    begun = _begin().json()
    with clock.at(clock.now() + timedelta(seconds=601)):
        assert _error(_ask(begun)) == "expired_token"
        page = sign_in(cast.colleague).post(PAGE, {"user_code": begun["user_code"]})
        assert page.status_code == 422 and "No login waits for this code" in page.content.decode()


def test_what_was_approved_too_late_to_be_asked_for_is_lost(cast: Cast) -> None:
    begun = _begin().json()
    sign_in(cast.colleague).post(PAGE, {"user_code": begun["user_code"], "answer": "approve"})
    with clock.at(clock.now() + timedelta(seconds=601)):
        assert _error(_ask(begun)) == "expired_token"


@pytest.mark.parametrize("who", ["pi", "outsider", "staff"])
def test_only_who_answers_for_the_agent_approves(cast: Cast, who: str) -> None:
    begun = _begin().json()
    client = sign_in(getattr(cast, who))
    for form in ({}, {"answer": "approve"}):
        answer = client.post(PAGE, {"user_code": begun["user_code"], **form})
        assert answer.status_code == 422 and "You answer for no agent that is called" in answer.content.decode()
    assert _error(_ask(begun)) == "authorization_pending"


def test_nobody_learns_from_the_api_whether_there_is_such_an_agent(cast: Cast) -> None:
    known, unknown = _begin(), _begin(client_id="okafor-none")
    assert known.status_code == unknown.status_code == 200
    assert known.json().keys() == unknown.json().keys()


def test_a_code_is_its_agent_s(cast: Cast) -> None:
    begun = _begin().json()
    sign_in(cast.colleague).post(PAGE, {"user_code": begun["user_code"], "answer": "approve"})
    assert _error(_ask(begun, client_id="marlowe-ingest")) == "invalid_grant"
    assert _ask(begun).status_code == 200


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"scope": "root"}, "invalid_scope"), ({"client_id": "<b>"}, "invalid_request"),
        ({"host": "a b"}, "invalid_request"),
    ],
    ids=["scope", "agent", "host"],
)  # fmt: skip
def test_what_cannot_be_asked_for_is_refused_at_once(cast: Cast, said: dict[str, str], error: str) -> None:
    assert _error(_begin(**said)) == error
    assert not DeviceLogin.objects.exists()


def test_another_grant_or_code_is_refused(cast: Cast) -> None:
    begun = _begin().json()
    assert _error(_ask(begun, grant_type="password")) == "unsupported_grant_type"
    assert _error(_ask(begun, device_code="x")) == "invalid_grant"


def test_an_agent_that_was_suspended_since_gets_none(cast: Cast) -> None:
    begun = _begin().json()
    sign_in(cast.colleague).post(PAGE, {"user_code": begun["user_code"], "answer": "approve"})
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="too many jobs")
    answer = _ask(begun)
    assert _error(answer) == "access_denied" and "too many jobs" in answer.json()["detail"]
    assert not AgentToken.objects.exists()


def test_a_suspended_agent_cannot_be_approved_and_the_page_says_why(cast: Cast) -> None:
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="too many jobs")
    page = sign_in(cast.colleague).post(PAGE, {"user_code": _begin().json()["user_code"]})
    assert page.status_code == 422 and "too many jobs" in page.content.decode()


def test_codes_are_guessed_at_a_limited_rate(cast: Cast, standing_clock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = _begin().json()
    client = sign_in(cast.colleague)
    tried = [client.post(PAGE, {"user_code": "BCDF-GHJK"}).status_code for _ in range(10)]
    assert tried == [422] * 10
    late = client.post(PAGE, {"user_code": begun["user_code"]})
    assert late.status_code == 429 and late["Retry-After"]
    monkeypatch.setattr("principals.device_page.TRIES_FROM_ADDRESS", 5)
    assert sign_in(cast.pi).post(PAGE, {"user_code": "BCDF-GHJK"}).status_code == 429  # from the same address


def test_logins_that_ended_are_forgotten(cast: Cast) -> None:
    _begin()
    with clock.at(clock.now() + timedelta(hours=2)):
        _begin()
    assert DeviceLogin.objects.count() == 1
    with clock.at(clock.now() + timedelta(hours=4)):
        assert [tasks.prune_device_logins(), tasks.prune_device_logins()] == [1, 0]

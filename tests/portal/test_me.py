"""An agent asks who it is."""

from pathlib import Path

import pytest

from portal.core import clock
from principals.engine import checking_in, scopes, tokens
from principals.models import AgentSession
from tests import factories
from tests.conftest import Api, Cast, sign_in


def test_it_says_who_acts_for_whom(cast: Cast, agent_api: Api) -> None:
    body = agent_api.get("/me").json()
    assert (body["agent"], body["acts_for"], body["lab"]) == ("okafor-docking", "colleague", "okafor")
    assert body["accounts"] == ["okafor_lab"]
    assert body["tier"]["name"] == "standard"
    assert body["limits"]["requests_per_minute"] > 0


def test_it_says_what_is_missing(cast: Cast) -> None:
    body = Api(factories.make_token(cast.agent, "me:read")).get("/me").json()
    codes = [item["code"] for item in body["missing"]]
    assert "not_checked_in" in codes
    asked_for = len(scopes.default_scopes(tokens.TokenKind.AGENT) - {"me:read", scopes.TELEMETRY})
    assert codes.count("scope_missing") == asked_for > 0
    assert all(item["remedy"] for item in body["missing"])
    lacking = next(item for item in body["missing"] if item["code"] == "not_checked_in")
    assert lacking["remedy"] == checking_in.REMEDY


def test_the_scope_of_telemetry_is_missing_where_telemetry_is_taken(cast: Cast, settings) -> None:
    api = Api(factories.make_token(cast.agent, "me:read"))

    def lacks() -> bool:
        return any(scopes.TELEMETRY in item["what"] for item in api.get("/me").json()["missing"])

    assert not lacks()
    settings.OTLP = "on"
    assert lacks()


def test_page_and_documents_say_in_the_same_words_what_checking_in_means(cast: Cast) -> None:
    root = Path(__file__).parents[2]
    texts = [(root / name).read_text() for name in ("README.md", "docs/users.md", "docs/harnesses.md")]
    for text in (*texts, sign_in(cast.colleague).get("/agents/okafor-docking/").content.decode()):
        plain = " ".join(text.replace("`", "").split())
        assert checking_in.MEANING in plain and checking_in.WHO_DECLARES in plain


def test_a_session_that_is_known_is_not_missing(cast: Cast, agent_api: Api) -> None:
    AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=factories.make_cluster_user(cast.cluster, cast.colleague), host="login01",
        harness="claude-code", started=clock.now(), agent=cast.agent,
    )  # fmt: skip
    assert "not_checked_in" not in [item["code"] for item in agent_api.get("/me").json()["missing"]]


def test_without_a_token_it_answers_401_with_a_remedy(db: None) -> None:
    response = Api("").get("/me")
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["remedy"]


def test_a_held_agent_reads_the_holds_code_and_remedy(cast: Cast, agent_api: Api) -> None:
    from principals import services as principal_services
    from principals.actors import SYSTEM_ACTOR

    principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=cast.agent.pk, kind="aup", code="aup_lapsed",
        reason="AUP 2026-06 is not accepted.", remedy="Its PI accepts it on My lab.",
    )  # fmt: skip
    response = agent_api.get("/me")
    body = response.json()
    assert (response.status_code, body["code"], body["remedy"]) == (
        403, "aup_lapsed", "Its PI accepts it on My lab.",
    )  # fmt: skip


def test_a_service_is_not_an_agent(cast: Cast, service_api: Api) -> None:
    response = service_api.get("/me")
    assert (response.status_code, response.json()["code"]) == (403, "scope_missing")


@pytest.mark.parametrize("canary", ["pi", "manager", "outsider"])
def test_it_never_names_other_people(cast: Cast, agent_api: Api, canary: str) -> None:
    assert f'"{canary}"' not in agent_api.get("/me").content.decode()

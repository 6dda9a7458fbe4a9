"""An agent starts sub-agents: they may do no more, live no longer, end with it, and the chain is seen everywhere."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.models import AuditEvent, LiveEvent
from principals import services as principal_services
from principals.models import AgentToken
from tests import factories
from tests.conftest import Api, Cast, sign_in

MAY = ("me:read", "jobs:read", "token:delegate")


def _start(parent: str, name: str = "reviewer", scopes: tuple[str, ...] = ("me:read",), **more: int):  # type: ignore[no-untyped-def]
    return Api(parent).post("/token/delegate", {"name": name, "scopes": list(scopes), **more})


def test_the_chain_is_seen_in_me_on_the_page_and_in_the_audit(cast: Cast) -> None:
    first = _start(factories.make_token(cast.agent, *MAY), scopes=MAY).json()["token"]
    second = _start(first, "tester").json()
    assert second["chain"] == ["okafor-docking", "reviewer", "tester"]
    assert [(link["kind"], link["name"]) for link in Api(second["token"]).get("/me").json()["chain"]] == [
        ("person", "colleague"), ("agent", "okafor-docking"), ("sub_agent", "reviewer"), ("sub_agent", "tester"),
    ]  # fmt: skip
    event = AuditEvent.objects.filter(verb="token.delegate").latest("pk")
    assert (event.actor_label, event.on_behalf_of) == ("okafor-docking › reviewer", "colleague")
    assert "sub-agent reviewer › tester of gha_" in sign_in(cast.pi).get("/agents/okafor-docking/").content.decode()


def test_it_has_no_scope_that_its_parent_lacks(cast: Cast) -> None:
    parent = factories.make_token(cast.agent, *MAY)
    refused = _start(parent, scopes=("me:read", "trials:request")).json()
    assert refused["code"] == "scope_beyond" and "trials:request" in refused["detail"]
    child = _start(parent).json()["token"]
    assert Api(child).get("/jobs").json()["code"] == "scope_missing"
    assert _start(child).json()["code"] == "scope_missing"


def test_it_lives_no_longer_and_works_from_nowhere_else(cast: Cast, standing_clock: None) -> None:
    end = clock.now() + timedelta(minutes=10)
    parent = factories.make_token(cast.agent, *MAY, expires=end, network_ranges=["127.0.0.0/8"])
    row = AgentToken.objects.get(key=_start(parent, life_s=3600).json()["key"])
    assert (row.expires, row.networks) == (end, ["127.0.0.0/8"])
    assert AgentToken.objects.get(key=_start(parent, life_s=60).json()["key"]).expires < end


def test_a_parent_s_end_ends_all_below_it_at_once(cast: Cast) -> None:
    parent = factories.make_token(cast.agent, *MAY)
    first = _start(parent, scopes=MAY).json()["token"]
    second, sibling = _start(first).json()["token"], _start(parent).json()["token"]
    principal_services.revoke_agent_token(actor=factories.actor_of(cast.pi), token=factories.token_row(first))
    codes = [Api(plain).get("/me").json().get("code") for plain in (parent, first, second, sibling)]
    assert codes == [None, "token_revoked", "token_revoked", None]
    assert LiveEvent.objects.filter(name="token.revoked").count() == 2
    Api(parent).post("/token/revoke")
    assert Api(sibling).get("/me").json()["code"] == "token_revoked"


def test_a_suspended_agent_s_sub_agents_stop_with_its_reason(cast: Cast) -> None:
    child = _start(factories.make_token(cast.agent, *MAY)).json()["token"]
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="too many jobs")
    assert "too many jobs" in Api(child).get("/me").json()["detail"]


def test_they_end_with_a_parent_that_is_rolled_over(cast: Cast, standing_clock: None) -> None:
    parent = factories.make_token(cast.agent, *MAY, "token:rotate")
    child = _start(parent)
    AgentToken.objects.filter(key=child.json()["key"]).update(expires=factories.token_row(parent).expires)
    Api(parent).post("/token/rotate")
    assert AgentToken.objects.get(key=child.json()["key"]).expires == factories.token_row(parent).expires


def test_a_sub_agent_is_not_rolled_over(cast: Cast) -> None:
    child = _start(factories.make_token(cast.agent, *MAY, "token:rotate"), scopes=("token:rotate",)).json()["token"]
    assert Api(child).post("/token/rotate").json()["code"] == "token_of_sub_agent"


def test_there_are_bounds(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = factories.make_token(cast.agent, *MAY)
    for _ in range(3):
        plain = _start(plain, scopes=MAY).json()["token"]
    assert _start(plain).json()["code"] == "too_deep"
    monkeypatch.setattr("principals.services.tokens.delegation.MOST", 1)
    parent = factories.make_token(cast.agent, *MAY)
    assert [_start(parent).json().get("code") for _ in range(2)] == [None, "too_many_sub_agents"]


def test_sub_agents_share_what_one_token_may_ask(
    cast: Cast, standing_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = factories.make_token(cast.agent, *MAY)
    first, second = _start(parent).json()["token"], _start(parent).json()["token"]
    monkeypatch.setattr("principals.auth.REQUESTS_PER_MINUTE", 3)
    assert [Api(plain).get("/me").status_code for plain in (first, second, first, second)] == [200, 200, 200, 429]
    assert Api(parent).get("/me").status_code == 200

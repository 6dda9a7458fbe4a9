"""A token is rolled over: the new one is told once, the old one goes on for a while, and both can end at once."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.errors import Conflict, NotAllowed
from portal.core.models import AuditEvent, LiveEvent
from principals import auth
from principals import services as principal_services
from principals.models import AgentToken
from tests import factories
from tests.conftest import Api, Cast, sign_in

ANYWHERE = "192.0.2.7"


def _rotate(cast: Cast, plain: str) -> str:
    return principal_services.rotate_agent_token(
        actor=factories.actor_of(cast.colleague), token=factories.token_row(plain)
    ).plain


def test_the_new_one_is_like_the_old_one_and_both_work_for_the_overlap(cast: Cast, standing_clock: None) -> None:
    old = factories.make_token(cast.agent, "me:read", "jobs:read", network_ranges=["192.0.2.0/24"], label="laptop")
    new = _rotate(cast, old)
    was, made = factories.token_row(old), factories.token_row(new)
    assert (made.scopes, made.networks, made.label) == (was.scopes, was.networks, was.label)
    assert was.expires == clock.now() + timedelta(hours=24)
    assert made.expires == clock.now() + timedelta(days=60)
    assert auth.actor_for_token(old, address=ANYWHERE).agent == auth.actor_for_token(new, address=ANYWHERE).agent


def test_the_overlap_is_the_site_s_and_never_later_than_its_own_end(cast: Cast, settings, standing_clock) -> None:  # type: ignore[no-untyped-def]
    settings.TOKEN_OVERLAP_HOURS = 1.0
    long = factories.make_token(cast.agent)
    short = factories.make_token(cast.agent, expires=clock.now() + timedelta(minutes=5))
    _rotate(cast, long)
    _rotate(cast, short)
    assert factories.token_row(long).expires == clock.now() + timedelta(hours=1)
    assert factories.token_row(short).expires == clock.now() + timedelta(minutes=5)


def test_it_lives_as_long_as_the_site_lets_its_tier(cast: Cast, settings, standing_clock) -> None:  # type: ignore[no-untyped-def]
    old = factories.make_token(cast.agent)
    settings.TOKEN_LIFE_DAYS = [7, 5, 1]
    assert factories.token_row(_rotate(cast, old)).expires == clock.now() + timedelta(days=7)


def test_a_token_rolls_itself_over_where_it_may(cast: Cast) -> None:
    old = factories.make_token(cast.agent, "me:read", "token:rotate")
    said = Api(old).post("/token/rotate")
    body = said.json()
    assert said.status_code == 200 and said["Cache-Control"] == "no-store"
    assert Api(body["token"]).get("/me").json()["token"]["key"] == body["key"]
    assert body["old_key"] == factories.token_row(old).key
    assert Api(factories.make_token(cast.agent)).post("/token/rotate").json()["code"] == "scope_missing"


def test_its_secret_is_kept_nowhere_also_with_an_idempotency_key(cast: Cast) -> None:
    from portal.core.models import IdempotencyKey

    old = factories.make_token(cast.agent, "token:rotate")
    plain = Api(old).post("/token/rotate", headers={"Idempotency-Key": "k"}).json()["token"]
    assert not IdempotencyKey.objects.exists()
    secret = plain.split(".")[1]
    assert not any(secret in str(event.payload) for event in AuditEvent.objects.all())
    assert not any(secret in str(event.payload) for event in LiveEvent.objects.all())


def test_an_answer_that_was_lost_does_no_harm(cast: Cast, standing_clock: None) -> None:
    old = factories.make_token(cast.agent)
    lost = _rotate(cast, old)
    again = _rotate(cast, old)
    assert factories.token_row(lost).state == "revoked"
    assert factories.token_row(again).expires == clock.now() + timedelta(days=60)
    assert factories.token_row(old).expires == clock.now() + timedelta(hours=24)


def test_one_that_was_rolled_over_and_used_is_not_rolled_over_again(cast: Cast) -> None:
    old = factories.make_token(cast.agent)
    new = _rotate(cast, old)
    auth.actor_for_token(new, address=ANYWHERE)
    with pytest.raises(Conflict) as caught:
        _rotate(cast, old)
    assert caught.value.code == "token_rotated"
    assert factories.token_row(new).state == "active"


@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_one_that_ended_is_not_rolled_over(cast: Cast, end: str) -> None:
    plain = factories.make_token(cast.agent)
    now = clock.now()
    AgentToken.objects.update(**({"revoked_at": now} if end == "revoked" else {"expires": now - timedelta(seconds=1)}))
    with pytest.raises(Conflict) as caught:
        _rotate(cast, plain)
    assert caught.value.code == f"token_{end}"


def test_an_outsider_or_another_agent_rolls_none_over(cast: Cast) -> None:
    row = factories.token_row(factories.make_token(cast.agent))
    other = factories.make_token(cast.foreign_agent, "token:rotate")
    sibling = factories.make_token(cast.agent, "token:rotate")
    for actor in (
        factories.actor_of(cast.outsider), auth.actor_for_token(other, address=ANYWHERE),
        auth.actor_for_token(sibling, address=ANYWHERE),
    ):  # fmt: skip
        with pytest.raises(NotAllowed):
            principal_services.rotate_agent_token(actor=actor, token=row)


def test_a_suspended_agent_s_token_is_not_rolled_over_and_says_why(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="too many jobs")
    with pytest.raises(Conflict, match="too many jobs") as caught:
        _rotate(cast, plain)
    assert caught.value.code == "agent_suspended"


def test_revoking_ends_one_or_if_asked_both(cast: Cast) -> None:
    old = factories.make_token(cast.agent)
    new = _rotate(cast, old)
    newest = _rotate(cast, new)
    other = factories.make_token(cast.agent)
    pi = factories.actor_of(cast.pi)
    principal_services.revoke_agent_token(actor=pi, token=factories.token_row(old))
    states = [factories.token_row(plain).state for plain in (old, new, newest, other)]
    assert states == ["revoked", "active", "active", "active"]
    principal_services.revoke_agent_token(actor=pi, token=factories.token_row(newest), with_rotation=True)
    states = [factories.token_row(plain).state for plain in (old, new, newest, other)]
    assert states == ["revoked", "revoked", "revoked", "active"]
    assert LiveEvent.objects.filter(name="token.revoked").count() == 3


def test_whoever_holds_a_token_gives_it_back(cast: Cast) -> None:
    api = Api(factories.make_token(cast.agent))
    assert api.post("/token/revoke").status_code == 200
    assert api.get("/me").json()["code"] == "token_revoked"


def test_its_owner_rolls_it_over_on_its_page_and_sees_the_new_one_once(cast: Cast) -> None:
    row = factories.token_row(factories.make_token(cast.agent, label="cron"))
    client = sign_in(cast.colleague)
    page = client.get("/agents/okafor-docking/").content.decode()
    assert f'action="/agents/okafor-docking/tokens/{row.key}/rotate/"' in page and "Revoke both" not in page
    form = {"csrfmiddlewaretoken": "one"}
    shown = client.post(f"/agents/okafor-docking/tokens/{row.key}/rotate/", form)
    new = AgentToken.objects.get(replaces=row)
    assert f"gha_{new.key}." in shown.content.decode() and "The old one still works" in shown.content.decode()
    again = client.post(f"/agents/okafor-docking/tokens/{row.key}/rotate/", form)
    assert again.status_code == 302 and AgentToken.objects.count() == 2
    page = client.get("/agents/okafor-docking/").content.decode()
    assert f"gha_{new.key} replaces it" in page and "Revoke both" in page
    client.post(f"/agents/okafor-docking/tokens/{row.key}/revoke/", {"both": "on"})
    assert not AgentToken.objects.filter(revoked_at=None).exists()


def test_the_audit_says_who_rolled_what_over(cast: Cast) -> None:
    old = factories.make_token(cast.agent, "token:rotate")
    Api(old).post("/token/rotate")
    event = AuditEvent.objects.get(verb="token.rotate")
    assert (event.actor_kind, event.on_behalf_of) == ("agent", "colleague")
    assert event.payload["after"]["replaces"] == factories.token_row(old).key

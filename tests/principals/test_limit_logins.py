"""How many logins an agent may have at once: the one used longest ago makes room, and none that is in use."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from pytest_django import Settings

from portal.core import clock
from portal.core.errors import Conflict
from portal.core.models import AuditEvent
from principals.models import AgentToken
from principals.services.tokens.logins import issue_login_token
from tests import factories
from tests.conftest import Api, Cast


@pytest.fixture(autouse=True)
def two(settings: Settings) -> Iterator[None]:
    settings.LOGINS_PER_AGENT = 2
    with clock.at(clock.now()):
        yield


def _log_in(cast: Cast, how: str = "munge", hours_ago: float = 0.0) -> str:
    """Log in, long ago or now; return the token's key."""
    with clock.at(clock.now() - timedelta(hours=hours_ago)):
        return issue_login_token(
            person=cast.colleague, agent=cast.agent, how=how, host="login01", scope_names=["me:read", "token:rotate"]
        ).row.key


def _live() -> set[str]:
    return set(AgentToken.objects.exclude(how="made").filter(revoked_at=None).values_list("key", flat=True))


def test_the_one_used_longest_ago_ends_for_one_more(cast: Cast) -> None:
    factories.make_token(cast.agent)  # made on its page: it counts for none
    used, idle = _log_in(cast, hours_ago=3), _log_in(cast, "device", hours_ago=2)
    AgentToken.objects.filter(key=used).update(last_used=clock.now())
    new = _log_in(cast, "device")
    assert _live() == {used, new}
    ended = AuditEvent.objects.get(verb="token.revoke")
    assert ended.payload["after"] == {"key": idle} and ended.payload["reason"] == "another login took its place"


def test_none_that_is_in_use_ends(cast: Cast) -> None:
    both = {_log_in(cast, hours_ago=0.5), _log_in(cast, "device")}
    with pytest.raises(Conflict) as caught:
        _log_in(cast)
    assert caught.value.code == "too_many_logins" and "logged in 2 times" in caught.value.detail
    assert "gatehouse logout" in str(caught.value.remedy)
    assert _live() == both and not AuditEvent.objects.filter(verb="token.revoke").exists()


def test_what_ended_and_what_a_sub_agent_has_count_for_none(cast: Cast) -> None:
    _log_in(cast, hours_ago=12.5)
    revoked = _log_in(cast)
    AgentToken.objects.filter(key=revoked).update(revoked_at=clock.now())
    plain = factories.make_token(cast.agent, "me:read", "token:delegate")
    body = {"name": "reviewer", "scopes": ["me:read"], "life_s": 600}
    assert Api(plain).post("/token/delegate", body).status_code == 200
    _log_in(cast), _log_in(cast)
    assert not AuditEvent.objects.filter(verb="token.revoke").exists()


def test_a_smaller_number_ends_as_many_as_it_takes(cast: Cast, settings: Settings) -> None:
    for hours in (4, 3):
        _log_in(cast, hours_ago=hours)
    settings.LOGINS_PER_AGENT = 1
    new = _log_in(cast)
    assert _live() == {new}


@pytest.mark.parametrize("how", ["munge", "device"])
def test_the_audit_says_which_scopes_were_given(cast: Cast, how: str) -> None:
    key = _log_in(cast, how)
    said = AuditEvent.objects.get(verb="token.login").payload["after"]
    assert (said["key"], said["scopes"], said["how"], said["host"]) == (key, ["me:read"], how, "login01")

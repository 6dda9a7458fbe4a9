"""The read of a token is written once, and still goes by the key and the time of each call."""

from datetime import timedelta

import pytest
from django.db.models import Q

from portal.core import clock
from portal.core.errors import NotAllowed
from principals import auth
from principals import services as principal_services
from principals.models import AgentToken, User
from principals.prepared import Prepared
from tests import factories
from tests.conftest import Cast

ANYWHERE = "192.0.2.7"


def test_a_hold_counts_by_the_time_of_each_call(cast: Cast) -> None:
    plain, now = factories.make_token(cast.agent), clock.now()
    assert auth.actor_for_token(plain, address=ANYWHERE).agent == cast.agent
    principal_services.place_hold(
        actor=factories.actor_of(cast.infosec), subject_kind="lab", subject_id=cast.lab.pk, kind="flood", code="flood",
        reason="Too many.", until=now + timedelta(hours=1),
    )  # fmt: skip
    with pytest.raises(NotAllowed):
        auth.actor_for_token(plain, address=ANYWHERE)
    with clock.at(now + timedelta(hours=2)):
        assert auth.actor_for_token(plain, address=ANYWHERE).agent == cast.agent


def test_it_is_the_row_that_django_would_read(cast: Cast) -> None:
    row = factories.token_row(factories.make_token(cast.agent, network_ranges=["10.4.0.0/16"], label="ünï"))
    read = auth._AGENT_TOKENS.first(row.key)
    assert read is not None
    names = [field.attname for field in AgentToken._meta.concrete_fields]
    assert [getattr(read, name) for name in names] == [getattr(row, name) for name in names]
    assert (read.agent, read.agent.owner, read.agent.lab) == (cast.agent, cast.colleague, cast.lab)
    assert read.agent.expires == cast.agent.expires and read.agent.hosts == cast.agent.hosts
    assert auth._AGENT_TOKENS.first("no such key") is None


@pytest.mark.django_db
def test_what_goes_by_no_key_or_no_time_is_refused() -> None:
    for build in (lambda key: User.objects.filter(Q(username="x")), lambda key: User.objects.filter(username=key)):
        with pytest.raises(RuntimeError):
            Prepared(build).first("x")

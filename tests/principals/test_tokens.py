"""A token opens the door for an agent that may work, and for nobody else."""

from datetime import timedelta

import pytest
from django.test import RequestFactory

from portal.core import clock
from portal.core.errors import Conflict, DomainError, Invalid, NotAllowed, Unauthenticated
from principals import auth
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, AgentToken, User
from tests import factories
from tests.conftest import Cast

ANYWHERE = "192.0.2.7"


def test_it_names_the_agent_and_its_owner(cast: Cast) -> None:
    actor = auth.actor_for_token(factories.make_token(cast.agent), address=ANYWHERE)
    assert (actor.ref.kind, actor.ref.label, actor.ref.on_behalf_of) == ("agent", "okafor-docking", "colleague")
    assert "jobs:read" in actor.scopes


def test_it_never_has_its_owners_roles(cast: Cast) -> None:
    User.objects.filter(pk=cast.colleague.pk).update(is_research_computing=True, is_infosec=True)
    actor = auth.actor_for_token(factories.make_token(cast.agent), address=ANYWHERE)
    assert not actor.sees_facility
    assert actor.managed_lab_ids == frozenset()


def test_the_secret_is_stored_nowhere(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    row = factories.token_row(plain)
    secret = plain.split(".")[1]
    assert all(secret not in str(value) for value in row.__dict__.values())


def test_the_check_is_one_query(cast: Cast, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    plain = factories.make_token(cast.agent)
    auth.actor_for_token(plain, address=ANYWHERE)  # writes last_used, once a minute
    with django_assert_num_queries(1):
        auth.actor_for_token(plain, address=ANYWHERE)


def _refusal(plain: str, address: str = ANYWHERE) -> DomainError:
    with pytest.raises((Unauthenticated, NotAllowed)) as caught:
        auth.actor_for_token(plain, address=address)
    return caught.value


def test_it_refuses_what_is_not_a_token(cast: Cast) -> None:
    assert _refusal("hello").code == "token_malformed"


def test_it_refuses_a_wrong_secret(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    wrong = plain[:-1] + ("0" if plain[-1] != "0" else "1")
    assert _refusal(wrong).code == "token_unknown"


def test_it_refuses_the_secret_of_another_token(cast: Cast) -> None:
    one, two = factories.make_token(cast.agent), factories.make_token(cast.agent)
    assert _refusal(one.split(".")[0] + "." + two.split(".")[1]).code == "token_unknown"


def test_it_refuses_an_expired_token(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    AgentToken.objects.update(expires=clock.now() - timedelta(seconds=1))
    assert _refusal(plain).code == "token_expired"


def test_it_refuses_a_revoked_token(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    principal_services.revoke_agent_token(
        actor=factories.actor_of(cast.pi), token=factories.token_row(plain), reason="laptop lost"
    )
    assert _refusal(plain).code == "token_revoked"


def test_it_refuses_another_address(cast: Cast) -> None:
    plain = factories.make_token(cast.agent, network_ranges=["10.4.0.0/16"])
    assert _refusal(plain, "10.5.0.1").code == "address_not_allowed"
    assert auth.actor_for_token(plain, address="10.4.9.9").agent == cast.agent


@pytest.mark.parametrize("kind", ["agent", "user", "lab"])
def test_a_hold_on_agent_owner_or_lab_stops_it_with_its_remedy(cast: Cast, kind: str) -> None:
    plain = factories.make_token(cast.agent)
    subject = {"agent": cast.agent.pk, "user": cast.colleague.pk, "lab": cast.lab.pk}[kind]
    hold = principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind=kind, subject_id=subject, kind="containment", code="contained",
        reason="A key was exposed.", remedy="Rotate it.",
    )  # fmt: skip
    refused = _refusal(plain)
    assert (refused.code, refused.remedy) == ("contained", "Rotate it.")
    principal_services.lift_hold(actor=SYSTEM_ACTOR, hold=hold, reason="rotated")
    assert auth.actor_for_token(plain, address=ANYWHERE).agent == cast.agent


def test_a_lapsed_hold_does_not_stop_it(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=cast.agent.pk, kind="flood", code="flood",
        reason="Too many requests.", until=clock.now() - timedelta(seconds=1),
    )  # fmt: skip
    assert auth.actor_for_token(plain, address=ANYWHERE).agent == cast.agent


def test_a_hold_on_another_subject_of_the_same_number_does_not(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="service", subject_id=cast.agent.pk, kind="flood", code="flood", reason="x"
    )
    assert auth.actor_for_token(plain, address=ANYWHERE).agent == cast.agent


@pytest.mark.parametrize("status", [Agent.Status.REQUESTED, Agent.Status.SUSPENDED, Agent.Status.RETIRED])
def test_it_dies_with_its_agent(cast: Cast, status: str) -> None:
    plain = factories.make_token(cast.agent)
    Agent.objects.filter(pk=cast.agent.pk).update(status=status)
    assert _refusal(plain).code == f"agent_{status}"


def test_it_ends_when_its_owner_leaves(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    User.objects.filter(pk=cast.colleague.pk).update(is_active=False)
    assert _refusal(plain).code == "owner_inactive"


def test_pepper_rotation_keeps_old_tokens(cast: Cast, settings) -> None:  # type: ignore[no-untyped-def]
    plain = factories.make_token(cast.agent)
    old = dict(settings.TOKEN_PEPPERS)
    settings.TOKEN_PEPPERS = {**old, max(old) + 1: "n" * 40}
    assert auth.actor_for_token(plain, address=ANYWHERE).agent == cast.agent
    settings.TOKEN_PEPPERS = {max(old) + 1: "n" * 40}
    assert _refusal(plain).code == "token_unknown"


def test_a_held_agent_gets_no_token(cast: Cast) -> None:
    held = factories.make_agent(cast.lab, cast.colleague, held=True)
    with pytest.raises(Conflict) as caught:
        factories.make_token(held)
    assert caught.value.code == "aup_required"


def test_its_life_is_bounded_by_the_tier(cast: Cast) -> None:
    with pytest.raises(Invalid) as caught:
        factories.make_token(cast.agent, expires=clock.now() + timedelta(days=61))
    assert caught.value.code == "expiry_out_of_range"


def test_unknown_scopes_are_refused_by_name(cast: Cast) -> None:
    with pytest.raises(Invalid, match="ingest:jobs"):
        factories.make_token(cast.agent, "me:read", "ingest:jobs")


def test_somebody_elses_agent_gets_no_token_from_me(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        principal_services.issue_agent_token(actor=factories.actor_of(cast.outsider), agent=cast.agent)


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ("10.9.9.9, 10.4.0.7", "10.4.0.7"),
        ("10.4.0.7, nonsense", "127.0.0.1"),
        ("10.4.0.7:5", "127.0.0.1"),
        ("", "127.0.0.1"),
    ],
    ids=["last", "nonsense", "port", "none"],
)
def test_behind_a_proxy_an_address_is_one_or_is_the_proxys(settings, said: str, counts: str) -> None:  # type: ignore[no-untyped-def]
    settings.PROXY_COUNT = 1
    assert auth.client_address(RequestFactory().get("/", headers={"x-forwarded-for": said})) == counts

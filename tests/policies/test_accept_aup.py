"""Accepting the policy is what sets a new agent free, and each version is published once, by staff."""

import pytest

from policies import selectors as policy_selectors
from policies import services as policy_services
from policies.models import AupAcceptance
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import selectors
from principals import services as principal_services
from principals.models import User
from tests import factories
from tests.conftest import Cast, sign_in


def _next_version(*, grace_days: int = 0) -> str:
    source = policy_services.current_aup().source.replace('version = "2026-06"', 'version = "2026-12"')
    return f"grace_days = {grace_days}\n{source}"


def test_it_lifts_the_hold_an_agent_is_born_with(cast: Cast) -> None:
    agent = factories.make_agent(cast.lab, cast.colleague, held=True)
    policy_services.accept_aup(actor=factories.actor_of(cast.pi), agent=agent, version="2026-06")
    assert not selectors.holds_on_agent(agent).exists()
    assert factories.make_token(agent)


def test_accepting_twice_changes_nothing(cast: Cast) -> None:
    actor = factories.actor_of(cast.colleague)
    first = policy_services.accept_aup(actor=actor, agent=cast.agent, version="2026-06")
    assert policy_services.accept_aup(actor=actor, agent=cast.agent, version="2026-06") == first
    kinds = AuditEvent.objects.filter(verb="aup.accept").values_list("object_kind", flat=True)
    assert sorted(kinds) == ["agent", "user"]


def test_it_records_the_exact_text(cast: Cast) -> None:
    policy_services.accept_aup(actor=factories.actor_of(cast.pi), agent=cast.agent, version="2026-06")
    acceptance = AupAcceptance.objects.get()
    assert acceptance.digest == policy_services.current_aup().digest
    assert acceptance.user == cast.pi


def _hand_over(cast: Cast, giver: User, taker: User) -> None:
    cast.agent.refresh_from_db()
    asked = principal_services.ask_handover(actor=factories.actor_of(giver), agent=cast.agent, taker=taker)
    principal_services.agree_handover(actor=factories.actor_of(taker), handover=asked)
    cast.agent.refresh_from_db()


def test_after_a_hand_over_the_new_owner_accepts_anew(cast: Cast) -> None:
    version = policy_services.current_aup()
    first = policy_services.accept_aup(actor=factories.actor_of(cast.colleague), agent=cast.agent, version="2026-06")
    assert cast.agent not in policy_selectors.agents_without(version)
    _hand_over(cast, cast.colleague, cast.manager)
    assert cast.agent in policy_selectors.agents_without(version)
    page = sign_in(cast.manager).get(cast.agent.get_absolute_url())
    assert (page.context["acceptance"], page.context["aup_waits"]) == (None, True)
    second = policy_services.accept_aup(actor=factories.actor_of(cast.manager), agent=cast.agent, version="2026-06")
    assert (first.owner, first.user, second.owner, second.user) == (
        cast.colleague, cast.colleague, cast.manager, cast.manager,
    )  # fmt: skip
    assert not selectors.holds_on_agent(cast.agent).exists()
    assert cast.agent not in policy_selectors.agents_without(version)
    assert AuditEvent.objects.filter(verb="aup.accept", object_kind="agent").count() == 2


def test_back_with_its_first_owner_their_acceptance_counts_again(cast: Cast) -> None:
    first = policy_services.accept_aup(actor=factories.actor_of(cast.colleague), agent=cast.agent, version="2026-06")
    _hand_over(cast, cast.colleague, cast.manager)
    _hand_over(cast, cast.manager, cast.colleague)
    assert selectors.holds_on_agent(cast.agent).exists()
    again = policy_services.accept_aup(actor=factories.actor_of(cast.colleague), agent=cast.agent, version="2026-06")
    assert again == first and not selectors.holds_on_agent(cast.agent).exists()


@pytest.mark.parametrize("who", ["outsider", "staff", "infosec", "auditor"])
def test_nobody_else_accepts_for_a_lab(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        policy_services.accept_aup(actor=factories.actor_of(getattr(cast, who)), agent=cast.agent, version="2026-06")


def test_an_outdated_version_is_refused(cast: Cast) -> None:
    policy_services.publish_aup(actor=factories.actor_of(cast.staff), source=_next_version())
    with pytest.raises(Conflict) as caught:
        policy_services.accept_aup(actor=factories.actor_of(cast.pi), agent=cast.agent, version="2026-06")
    assert caught.value.code == "aup_version_outdated"


def test_a_version_without_grace_holds_every_agent_at_once(cast: Cast, django_capture_on_commit_callbacks) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        policy_services.publish_aup(actor=factories.actor_of(cast.staff), source=_next_version())
    for agent in (cast.agent, cast.foreign_agent):
        assert [hold.code for hold in selectors.holds_on_agent(agent)] == ["aup_required"]


def test_only_staff_publish(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        policy_services.publish_aup(actor=factories.actor_of(cast.pi), source=_next_version())


def test_a_faulty_policy_names_its_clause(cast: Cast) -> None:
    policy_services.current_aup()
    source = _next_version().replace('modality = "limit"\nvalue = 1\n', 'modality = "limit"\n')
    with pytest.raises(Invalid, match=r"sessions\.max"):
        policy_services.publish_aup(actor=factories.actor_of(cast.staff), source=source)


def test_a_version_is_published_once(cast: Cast) -> None:
    with pytest.raises(Conflict):
        policy_services.publish_aup(actor=factories.actor_of(cast.staff), source=policy_services.current_aup().source)

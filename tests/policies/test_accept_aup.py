"""Accepting the policy is what sets a new agent free, and each version is published once, by staff."""

import pytest

from policies import services as policy_services
from policies.models import AupAcceptance
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import selectors
from tests import factories
from tests.conftest import Cast


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

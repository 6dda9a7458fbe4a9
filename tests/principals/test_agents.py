"""An agent's way from request to retirement."""

from dataclasses import replace
from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent, LiveEvent
from principals import selectors
from principals import services as principal_services
from principals.engine.harnesses import known_harnesses
from principals.models import Agent, AgentToken, Hold, User
from principals.services.agents import Registration
from tests import factories
from tests.conftest import Cast

WISH = Registration(
    name="okafor-membrane", harness="claude-code", purpose="Prepares membranes.", expires=clock.now() + timedelta(90)
)


def _register(cast: Cast, user: User, owner: User | None = None, wish: Registration = WISH) -> Agent:
    return principal_services.register_agent(
        actor=factories.actor_of(user), lab=cast.lab, owner=owner or user, registration=wish
    )


def test_a_pi_registers_and_thereby_approves(cast: Cast) -> None:
    agent = _register(cast, cast.pi, cast.colleague)
    assert (agent.status, agent.owner) == (Agent.Status.ACTIVE, cast.colleague)


def test_a_member_asks_and_the_pi_approves(cast: Cast) -> None:
    agent = _register(cast, cast.colleague)
    assert agent.status == Agent.Status.REQUESTED
    principal_services.approve_agent(actor=factories.actor_of(cast.pi), agent=agent)
    assert agent.status == Agent.Status.ACTIVE


def test_above_the_standard_tier_staff_approve_too(cast: Cast) -> None:
    wish = replace(WISH, autonomy=Agent.Autonomy.UNATTENDED, partitions=["gpu_h200"])
    agent = _register(cast, cast.pi, wish=wish)
    assert selectors.approvals_missing(agent) == {"staff"}
    assert agent.status == Agent.Status.REQUESTED
    principal_services.approve_agent(actor=factories.actor_of(cast.staff), agent=agent)
    assert agent.status == Agent.Status.ACTIVE


def test_it_is_born_held_until_the_aup_is_accepted(cast: Cast) -> None:
    agent = _register(cast, cast.pi)
    assert [hold.code for hold in selectors.holds_on_agent(agent)] == ["aup_required"]


@pytest.mark.parametrize("who", ["outsider", "auditor", "infosec"])
def test_people_outside_the_lab_register_nothing(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        _register(cast, getattr(cast, who))


def test_a_member_registers_only_for_themself(cast: Cast) -> None:
    with pytest.raises(NotAllowed) as caught:
        _register(cast, cast.colleague, cast.pi)
    assert caught.value.code == "not_manager"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "okafor membrane"}, "name"),
        ({"name": "okafor-docking"}, "name"),
        ({"harness": "skynet"}, "harness"),
        ({"purpose": "  "}, "purpose"),
        ({"autonomy": "wild"}, "autonomy"),
        ({"expires": clock.now() - timedelta(days=1)}, "expires"),
        ({"expires": clock.now() + timedelta(days=400)}, "expires"),
    ],
)
def test_bad_input_names_its_field(cast: Cast, change: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        _register(cast, cast.pi, wish=replace(WISH, **change))  # type: ignore[arg-type]
    assert caught.value.extra["field"] == field
    assert not Agent.objects.filter(purpose=WISH.purpose).exists()


def test_an_unknown_harness_is_refused_with_those_that_are_known(cast: Cast) -> None:
    with pytest.raises(Invalid) as caught:
        _register(cast, cast.pi, wish=replace(WISH, harness="skynet"))
    assert caught.value.code == "unknown_harness"
    assert all(slug in caught.value.remedy for slug in known_harnesses())


def test_its_owner_must_belong_to_the_lab(cast: Cast) -> None:
    with pytest.raises(Invalid) as caught:
        _register(cast, cast.pi, cast.outsider)
    assert caught.value.code == "owner_outside_lab"


@pytest.mark.parametrize("who", ["pi", "manager", "colleague", "staff", "infosec"])
def test_those_who_answer_for_it_suspend_it(cast: Cast, who: str) -> None:
    principal_services.suspend_agent(
        actor=factories.actor_of(getattr(cast, who)), agent=cast.agent, reason="runs on login01"
    )
    cast.agent.refresh_from_db()
    assert cast.agent.status == Agent.Status.SUSPENDED
    assert "runs on login01" in selectors.holds_on_agent(cast.agent).get().reason


@pytest.mark.parametrize("who", ["outsider", "auditor"])
def test_nobody_else_does(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        principal_services.suspend_agent(
            actor=factories.actor_of(getattr(cast, who)), agent=cast.agent, reason="because"
        )


def test_suspending_needs_a_reason(cast: Cast) -> None:
    with pytest.raises(Invalid):
        principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason=" ")


def test_resuming_lifts_its_own_hold_and_no_other(cast: Cast) -> None:
    agent = factories.make_agent(cast.lab, cast.colleague, held=True)
    actor = factories.actor_of(cast.pi)
    principal_services.suspend_agent(actor=actor, agent=agent, reason="check")
    principal_services.resume_agent(actor=actor, agent=agent, reason="checked")
    assert [hold.kind for hold in selectors.holds_on_agent(agent)] == [Hold.Kind.AUP]


def test_only_one_of_two_suspensions_takes_effect(cast: Cast) -> None:
    stale = Agent.objects.get(pk=cast.agent.pk)
    actor = factories.actor_of(cast.pi)
    principal_services.suspend_agent(actor=actor, agent=cast.agent, reason="one")
    with pytest.raises(Conflict):
        principal_services.suspend_agent(actor=actor, agent=stale, reason="two")
    assert Hold.objects.in_force().count() == 1


def test_retiring_revokes_its_tokens_for_good(cast: Cast) -> None:
    factories.make_token(cast.agent)
    actor = factories.actor_of(cast.pi)
    principal_services.retire_agent(actor=actor, agent=cast.agent, reason="done")
    assert AgentToken.objects.get().state == "revoked"
    with pytest.raises(Conflict):
        principal_services.resume_agent(actor=actor, agent=cast.agent, reason="again")


def test_each_change_is_audited_and_told(cast: Cast) -> None:
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="check")
    event = AuditEvent.objects.get(verb="agent.suspend")
    assert (event.actor_label, event.object_label, event.lab_id) == ("pi", "okafor-docking", cast.lab.pk)
    assert event.payload == {"before": {"status": "active"}, "after": {"status": "suspended"}, "reason": "check"}
    assert f"agent:{cast.agent.pk}" in LiveEvent.objects.get(name="agent.changed").topics

"""An agent passes to somebody else once both sides agree, or staff say so."""

import pytest

from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import selectors
from principals import services as principal_services
from principals.models import Agent, AgentHandover, AgentToken, LabMembership, Notice, User
from tests import factories
from tests.conftest import Api, Cast


def _ask(cast: Cast, who: User, taker: User) -> AgentHandover:
    return principal_services.ask_handover(actor=factories.actor_of(who), agent=cast.agent, taker=taker)


def _agree(handover: AgentHandover, who: User) -> AgentHandover:
    return principal_services.agree_handover(actor=factories.actor_of(who), handover=handover)


def _owner(cast: Cast) -> str:
    return Agent.objects.get(pk=cast.agent.pk).owner.username


def test_its_owner_asks_and_the_other_agrees(cast: Cast) -> None:
    asked = _ask(cast, cast.colleague, cast.manager)
    assert (asked.state, _owner(cast)) == ("open", "colleague")
    _agree(asked, cast.manager)
    assert (AgentHandover.objects.get().state, _owner(cast)) == ("done", "manager")


def test_its_tokens_end_and_the_trail_stays(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    assert Api(plain).get("/me").status_code == 200
    _agree(_ask(cast, cast.colleague, cast.manager), cast.manager)
    assert AgentToken.objects.get().state == "revoked"
    assert Api(plain).get("/me").status_code == 401
    row = AuditEvent.objects.get(verb="agent.hand_over")
    assert row.payload["before"] == {"owner": "colleague"}
    assert row.payload["after"]["owner"] == "manager" and row.payload["after"]["tokens_revoked"]
    assert [hold.code for hold in selectors.holds_on_agent(Agent.objects.get(pk=cast.agent.pk))] == ["aup_required"]


def test_a_pi_asks_and_both_sides_agree(cast: Cast) -> None:
    asked = _ask(cast, cast.pi, cast.manager)
    _agree(asked, cast.manager)
    assert _owner(cast) == "colleague"
    _agree(AgentHandover.objects.get(), cast.colleague)
    assert _owner(cast) == "manager"


@pytest.mark.parametrize("how", ["switched off", "out of the lab"])
def test_for_an_owner_who_left_the_pi_agrees(cast: Cast, how: str) -> None:
    if how == "switched off":
        User.objects.filter(pk=cast.colleague.pk).update(is_active=False)
    else:
        LabMembership.objects.filter(user=cast.colleague).delete()
    cast.agent.refresh_from_db()
    asked = _ask(cast, cast.pi, cast.manager)
    assert (asked.giver_agreed, asked.taker_agreed) == (True, False)
    _agree(asked, cast.manager)
    assert _owner(cast) == "manager"


def test_staff_decide_alone(cast: Cast) -> None:
    _ask(cast, cast.staff, cast.manager)
    assert _owner(cast) == "manager"


def test_nobody_agrees_for_another(cast: Cast) -> None:
    asked = _ask(cast, cast.colleague, cast.manager)
    for who in (cast.pi, cast.outsider, cast.infosec):
        with pytest.raises(NotAllowed):
            _agree(asked, who)
    assert _owner(cast) == "colleague"


def test_only_somebody_of_the_lab_takes_it(cast: Cast) -> None:
    for taker, code in ((cast.outsider, "owner_outside_lab"), (cast.colleague, "owner_already")):
        with pytest.raises(Invalid) as caught:
            _ask(cast, cast.colleague, taker)
        assert caught.value.code == code


def test_not_to_somebody_who_may_not_charge_its_accounts(cast: Cast) -> None:
    Agent.objects.filter(pk=cast.agent.pk).update(accounts=["okafor_lab"])
    cast.agent.refresh_from_db()
    with pytest.raises(Invalid) as caught:
        _ask(cast, cast.colleague, cast.manager)
    assert caught.value.code == "account_not_associated"


def test_declined_it_stays_and_can_be_asked_again(cast: Cast) -> None:
    asked = _ask(cast, cast.colleague, cast.manager)
    with pytest.raises(Conflict):
        _ask(cast, cast.colleague, cast.pi)
    principal_services.close_handover(actor=factories.actor_of(cast.manager), handover=asked)
    with pytest.raises(Conflict):
        _agree(asked, cast.manager)
    assert _ask(cast, cast.colleague, cast.pi).state == "open"


def _told(kind: str) -> set[str]:
    return set(Notice.objects.filter(kind=kind).values_list("person__username", flat=True))


def test_both_sides_and_the_pi_are_told(cast: Cast) -> None:
    asked = _ask(cast, cast.colleague, cast.manager)
    assert (_told("handover_asked"), _told("handover_settled")) == ({"colleague", "manager", "pi"}, set())
    row = Notice.objects.get(person=cast.manager, kind="handover_asked")
    assert row.title == "okafor-docking is to pass to manager" and "It waits for manager." in row.text
    _agree(asked, cast.manager)
    assert _told("handover_settled") == {"colleague", "manager", "pi"}
    row = Notice.objects.get(person=cast.pi, kind="handover_settled")
    assert row.title == "manager answers for okafor-docking now"


def test_one_that_staff_decide_is_told_once_it_is_done(cast: Cast) -> None:
    _ask(cast, cast.staff, cast.manager)
    assert (_told("handover_asked"), _told("handover_settled")) == (set(), {"colleague", "manager", "pi"})


def test_a_declined_one_is_told(cast: Cast) -> None:
    asked = _ask(cast, cast.colleague, cast.manager)
    principal_services.close_handover(actor=factories.actor_of(cast.manager), handover=asked)
    assert (
        Notice.objects.get(person=cast.colleague, kind="handover_settled").title
        == "okafor-docking stays with colleague"
    )

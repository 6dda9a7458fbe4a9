"""An agent passes to somebody else once both sides agree, or staff say so."""

import pytest

from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import permissions, selectors
from principals import services as principal_services
from principals.events import agent_handed_over, handover_asked
from principals.models import Agent, AgentHandover, AgentToken, Hold, LabMembership, User
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


def test_others_hear_of_it(cast: Cast, django_capture_on_commit_callbacks) -> None:  # type: ignore[no-untyped-def]
    heard: list[str] = []

    def asked(**_: object) -> None:
        heard.append("asked")

    def passed(**_: object) -> None:
        heard.append("passed")

    handover_asked.connect(asked)
    agent_handed_over.connect(passed)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            _agree(_ask(cast, cast.colleague, cast.manager), cast.manager)
    finally:
        handover_asked.disconnect(asked)
        agent_handed_over.disconnect(passed)
    assert heard == ["asked", "passed"]


def test_no_token_is_made_for_who_had_it_a_moment_ago(cast: Cast) -> None:
    """Whoever read the agent before it passed on makes no token after its tokens ended."""
    row = factories.token_row(factories.make_token(cast.agent, "me:read", "token:rotate", "token:delegate"))
    before, mine = Agent.objects.get(pk=cast.agent.pk), factories.actor_of(cast.colleague)
    itself = permissions.actor_for_agent(AgentToken.objects.select_related("agent__owner").get(pk=row.pk))
    row.agent = before
    _agree(_ask(cast, cast.colleague, cast.manager), cast.manager)
    for make in (
        lambda: principal_services.issue_agent_token(actor=mine, agent=before),
        lambda: principal_services.rotate_agent_token(actor=mine, token=row),
        lambda: principal_services.start_sub_agent(actor=itself, name="late", scope_names=["me:read"], life_s=60),
    ):
        Hold.objects.all().delete()
        with pytest.raises(Conflict) as caught:
            make()
        assert caught.value.code == "agent_changed"
    assert AgentToken.objects.get().state == "revoked"


def test_a_retired_agent_is_not_passed_on(cast: Cast) -> None:
    asked = _ask(cast, cast.colleague, cast.manager)
    principal_services.retire_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="over")
    with pytest.raises(Conflict) as caught:
        _agree(AgentHandover.objects.get(pk=asked.pk), cast.manager)
    assert (caught.value.code, _owner(cast)) == ("agent_retired", "colleague")


def test_sessions_of_who_had_it_are_not_the_agent_s_to_see(cast: Cast) -> None:
    login = factories.make_cluster_user(cast.cluster, cast.colleague)
    here = {"harness": "claude-code", "host": "login01", "pid": 7}
    before = Api(factories.make_token(cast.agent, "sessions:write")).post("/sessions", here | {"login": login.login})
    _agree(_ask(cast, cast.colleague, cast.manager), cast.manager)
    Hold.objects.all().delete()
    now = Api(factories.make_token(Agent.objects.get(pk=cast.agent.pk), "sessions:write"))
    assert now.get("/sessions").json()["items"] == []
    assert now.post(f"/sessions/{before.json()['id']}/heartbeat").status_code == 404

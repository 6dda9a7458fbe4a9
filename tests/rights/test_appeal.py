"""Appeals: who may, by when they are answered, what granting does, and who is told."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed, NotFound
from portal.core.models import AuditEvent
from principals import selectors
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, AgentSession, Appeal, Hold, Notice, User
from principals.services import kill_switches as switches
from principals.services import rights
from tests import factories
from tests.conftest import Cast, sign_in

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


@pytest.fixture
def hold(cast: Cast) -> Hold:
    return principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=cast.agent.pk, kind=Hold.Kind.FLOOD, code="flood",
        reason="Too many questions.",
    )  # fmt: skip


def appeal(who: User, hold: Hold, reason: str = "It was my own loop.") -> Appeal:
    return principal_services.file_hold_appeal(actor=factories.actor_of(who), hold=hold, reason=reason)


def answer(who: User, filed: Appeal, *, granted: bool = True, text: str = "Right.") -> Appeal:
    return principal_services.answer_appeal(
        actor=factories.actor_of(who), appeal=filed, granted=granted, answer=text
    )  # fmt: skip


def test_it_works(cast: Cast, hold: Hold, settings):
    settings.APPEAL_DAYS = 3
    filed = appeal(cast.colleague, hold)
    assert filed.due - filed.filed == timedelta(days=3)
    told = Notice.objects.filter(kind="appeal_filed").values_list("person__username", flat=True)
    assert set(told) == {"staff", "infosec"}
    answer(cast.staff, filed)
    assert not Hold.objects.in_force().exists()
    assert Notice.objects.get(person=cast.colleague, kind="appeal_answered").title == "Your appeal was granted"
    verbs = AuditEvent.objects.filter(object_kind="appeal").values_list("verb", flat=True)
    assert set(verbs) == {"appeal.file", "appeal.grant"}


def test_a_refusal_leaves_the_hold_and_says_why(cast: Cast, hold: Hold):
    answer(cast.infosec, appeal(cast.pi, hold), granted=False, text="The log says otherwise.")
    assert Hold.objects.in_force().exists()
    assert "The log says otherwise." in Notice.objects.get(kind="appeal_answered").text


def test_a_suspension_that_is_lifted_gives_the_agent_back(cast: Cast):
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="polls")
    (hold,) = Hold.objects.in_force()
    answer(cast.staff, appeal(cast.colleague, hold))
    cast.agent.refresh_from_db()
    assert (cast.agent.status, Hold.objects.in_force().exists()) == (Agent.Status.ACTIVE, False)


def test_a_kill_switch_ends_with_its_switch(cast: Cast):
    until = clock.now() + timedelta(hours=1)
    actor = factories.actor_of(cast.infosec)
    switch = switches.pull(actor=actor, target=switches.find_target("all"), reason="x", until=until)
    filed = appeal(cast.colleague, switch.hold)
    with pytest.raises(Conflict) as refused:
        answer(cast.staff, filed)
    assert refused.value.code == "kill_switch_in_force"
    assert Appeal.objects.waiting().exists()
    office, grant = sign_in(cast.staff), 'value="grant"'
    assert grant not in office.get("/appeals/").content.decode()
    switches.end(actor=actor, switch=switch, reason="Over.")
    assert grant in office.get("/appeals/").content.decode()
    assert answer(cast.staff, filed).state == "granted"


@pytest.mark.parametrize("who", ["outsider", "staff", "manager"])
def test_who_is_not_concerned_finds_no_such_hold(cast: Cast, hold: Hold, who: str):
    with pytest.raises(NotFound):
        appeal(getattr(cast, who), hold)


def test_it_waits_once(cast: Cast, hold: Hold):
    filed = appeal(cast.colleague, hold)
    with pytest.raises(Conflict):
        appeal(cast.colleague, hold)
    answer(cast.staff, filed, granted=False)
    appeal(cast.colleague, hold)
    with pytest.raises(Conflict):
        answer(cast.staff, filed)


@pytest.mark.parametrize("who", ["colleague", "pi", "auditor"])
def test_staff_and_infosec_alone_answer(cast: Cast, hold: Hold, who: str):
    filed = appeal(cast.colleague, hold)
    with pytest.raises(NotAllowed):
        answer(getattr(cast, who), filed)


def test_nobody_answers_their_own(cast: Cast, hold: Hold):
    Agent.objects.filter(pk=cast.agent.pk).update(owner=cast.staff)
    with pytest.raises(NotAllowed) as refused:
        answer(cast.staff, appeal(cast.staff, hold))
    assert refused.value.code == "own_appeal"


def test_words_are_needed_both_ways(cast: Cast, hold: Hold):
    with pytest.raises(Invalid):
        appeal(cast.colleague, hold, reason="  \u200b ")
    with pytest.raises(Invalid):
        answer(cast.staff, appeal(cast.colleague, hold), text=" ")


def test_the_label_of_a_session_can_be_appealed_by_its_person_alone(cast: Cast):
    login = cast.cluster.cluster_users.get(login="colleague")
    session = AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=login, host="login01", harness="codex", started=clock.now_s()
    )
    session.refresh_from_db()
    filed = principal_services.file_label_appeal(
        actor=factories.actor_of(cast.colleague), session=session, reason="That was me."
    )
    assert "Codex" in filed.about
    with pytest.raises(NotFound):
        principal_services.file_label_appeal(actor=factories.actor_of(cast.pi), session=session, reason="x")
    assert answer(cast.staff, filed).state == "granted"


def test_who_is_held_can_still_appeal(cast: Cast):
    hold = principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="user", subject_id=cast.colleague.pk, kind=Hold.Kind.SUSPENSION, code="x",
        reason="A mistake.",
    )  # fmt: skip
    browser = sign_in(cast.colleague)
    assert browser.post("/notices/choose/", {}).status_code == 403
    assert "A mistake." in browser.get("/held/").content.decode()
    assert browser.post("/held/appeal/", {"hold": hold.pk, "reason": "Not me."}).status_code == 302
    filed = Appeal.objects.get()
    assert 'name="hold"' not in browser.get("/held/").content.decode(), "it is not to be appealed twice"
    office = sign_in(cast.staff)
    assert "Not me." in office.get("/appeals/").content.decode()
    assert office.post(f"/appeals/{filed.pk}/answer/", {"decision": "grant", "answer": "Sorry."}).status_code == 302
    assert "Sorry." in browser.get("/held/").content.decode()
    assert not Hold.objects.in_force().exists()


def test_holds_that_concern_somebody(cast: Cast, hold: Hold):
    seen = {who for who in ("pi", "colleague", "manager", "outsider", "staff")
            if selectors.holds_concerning(getattr(cast, who)).exists()}  # fmt: skip
    assert seen == {"pi", "colleague"}


def test_one_that_is_late_is_shown_so(cast: Cast, hold: Hold):
    appeal(cast.colleague, hold)
    browser = sign_in(cast.staff)
    assert "count--due" not in browser.get("/appeals/").content.decode()
    with clock.at(clock.now() + timedelta(days=6)):
        assert "count--due" in browser.get("/appeals/").content.decode()
        assert Appeal.objects.get().is_late
        assert [rights.tell_of_late_appeals(), rights.tell_of_late_appeals()] == [2, 0]
    assert rights.tell_of_late_appeals() == 0


@pytest.mark.parametrize("sent", [{}, {"hold": "x"}, {"session": "-1"}], ids=["nothing", "word", "negative"])
def test_nonsense_is_refused(cast: Cast, sent: dict[str, str]):
    assert sign_in(cast.colleague).post("/held/appeal/", sent).status_code == 422


def test_a_flood_of_appeals_is_refused_before_the_office_is_told(cast: Cast, monkeypatch):
    monkeypatch.setattr(rights, "MOST_WAITING", 2)
    placed = [
        principal_services.place_hold(
            actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=cast.agent.pk, kind=Hold.Kind.FLOOD, code=code,
            reason="Too many.",
        )
        for code in ("one", "two", "three")
    ]  # fmt: skip
    filed = [appeal(cast.colleague, one) for one in placed[:2]]
    with pytest.raises(Conflict) as refused:
        appeal(cast.colleague, placed[2])
    assert refused.value.code == "appeals_many"
    assert Notice.objects.filter(kind="appeal_filed").count() == 4
    answer(cast.staff, filed[0], granted=False)
    appeal(cast.colleague, placed[2])


def test_a_hold_of_the_policy_ends_with_its_acceptance_alone(cast: Cast):
    """Lifted by hand it would be placed again by the next sweep."""
    held = principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=cast.agent.pk, kind=Hold.Kind.AUP, code="aup_required",
        reason="Not accepted.",
    )  # fmt: skip
    filed = appeal(cast.colleague, held)
    with pytest.raises(Conflict) as refused:
        answer(cast.staff, filed)
    assert refused.value.code == "acceptance_missing"
    filed.refresh_from_db()
    assert filed.state == "open" and Hold.objects.in_force().filter(pk=held.pk).exists()
    answer(cast.staff, filed, granted=False)

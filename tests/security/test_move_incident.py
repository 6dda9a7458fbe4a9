"""Incidents change state by the steps there are, with a reason where one is owed, and only once."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent, LiveEvent
from principals.models import AgentToken, Hold
from principals.permissions import actor_for_user
from security.engine import incidents as rules
from security.models import Incident
from security.models.choices import OPEN, State
from security.services import add_note, assign, contain_agent, move_incident, release_agent
from tests import factories
from tests.conftest import Api, Cast
from tests.security.support import TOKEN, make_incident

pytestmark = pytest.mark.sql
STEPS = [step for steps in rules.TRANSITIONS.values() for step in steps]


def in_state(cast: Cast, state: str) -> Incident:
    incident = make_incident(cast)
    Incident.objects.filter(pk=incident.pk).update(
        state=state,
        triaged_at=incident.opened if state in ("triaged", "contained") else None,
        contained_at=incident.opened if state == "contained" else None,
        closed_at=None if state in OPEN else clock.now(),
    )
    return Incident.objects.get(pk=incident.pk)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.source.value}-{step.target.value}")
def test_every_step_leaves_state_time_timeline_audit_and_news(cast: Cast, step: rules.Transition) -> None:
    incident, target = in_state(cast, step.source.value), step.target.value
    move_incident(actor=actor_for_user(cast.infosec), incident=incident, to=target, reason="Revoked by its owner.")
    stored = Incident.objects.get(pk=incident.pk)
    assert stored.state == incident.state == target
    assert (stored.closed_at is None) == (target in OPEN)
    assert stored.closed_reason == ("" if target in OPEN else "Revoked by its owner.")
    assert (stored.due_at is None) == (target not in OPEN)
    if target == "reopened":
        assert stored.due_at == stored.reopened + timedelta(hours=1)
    line = stored.events.get(kind="moved")
    assert (line.old, line.new, line.actor_label) == (step.source.value, target, "infosec")
    audit = AuditEvent.objects.get(verb="incident.move")
    assert (audit.payload["after"], audit.payload["reason"]) == ({"is": target}, "Revoked by its owner.")
    assert LiveEvent.objects.get(name="incident.changed").payload["state"] == target


@pytest.mark.parametrize("step", [step for step in STEPS if step.needs_reason], ids=lambda step: step.verb)
def test_a_step_that_owes_a_reason_asks_for_it(cast: Cast, step: rules.Transition) -> None:
    incident = in_state(cast, step.source.value)
    with pytest.raises(Invalid) as refusal:
        move_incident(actor=actor_for_user(cast.infosec), incident=incident, to=step.target.value, reason="  \n")
    assert (refusal.value.code, refusal.value.extra) == ("reason_required", {"field": "reason"})
    assert Incident.objects.get(pk=incident.pk).state == step.source.value


def test_a_step_that_does_not_exist_names_those_that_do(cast: Cast) -> None:
    known = {(step.source.value, step.target.value) for step in STEPS}
    for target in set(State.values) - {to for source, to in known if source == "new"}:
        with pytest.raises(Conflict) as refusal:
            move_incident(actor=actor_for_user(cast.infosec), incident=in_state(cast, "new"), to=target, reason="x")
        assert "triaged, false_alarm, accepted" in refusal.value.remedy


def test_of_two_who_act_on_the_same_page_the_second_is_told(cast: Cast) -> None:
    one, other = in_state(cast, "new"), Incident.objects.get()
    actor = actor_for_user(cast.infosec)
    move_incident(actor=actor, incident=one, to="triaged")
    with pytest.raises(Conflict, match="it is triaged now"):
        move_incident(actor=actor, incident=other, to="false_alarm", reason="x")
    with pytest.raises(Conflict, match="it is triaged now"):
        move_incident(actor=actor, incident=one, to="contained", seen="new")
    assert Incident.objects.get().state == "triaged"


def test_only_infosec_acts(cast: Cast) -> None:
    incident = make_incident(cast)
    for user in (cast.pi, cast.manager, cast.colleague, cast.outsider, cast.staff, cast.auditor):
        actor = actor_for_user(user)
        for act in (
            lambda: move_incident(actor=actor, incident=incident, to="triaged"),  # noqa: B023
            lambda: assign(actor=actor, incident=incident, to=cast.infosec),  # noqa: B023
            lambda: add_note(actor=actor, incident=incident, text="x"),  # noqa: B023
            lambda: contain_agent(actor=actor, incident=incident, reason="x"),  # noqa: B023
            lambda: release_agent(actor=actor, incident=incident, reason="x"),  # noqa: B023
        ):
            with pytest.raises(NotAllowed):
                act()
    assert Incident.objects.get().events.count() == 1


def test_assigning_is_for_infosec_and_the_second_taker_is_told(cast: Cast) -> None:
    incident, stale = make_incident(cast), Incident.objects.get()
    actor, colleague = actor_for_user(cast.infosec), factories.make_user("infosec2", is_infosec=True)
    with pytest.raises(Invalid, match="not of InfoSec"):
        assign(actor=actor, incident=incident, to=cast.pi)
    assign(actor=actor, incident=incident, to=cast.infosec)
    with pytest.raises(Conflict, match="took"):
        assign(actor=actor_for_user(colleague), incident=stale, to=colleague)
    assert Incident.objects.get().assignee == cast.infosec


def test_a_note_keeps_no_secret(cast: Cast) -> None:
    incident = make_incident(cast)
    note = add_note(actor=actor_for_user(cast.infosec), incident=incident, text=f"The key is {TOKEN}, revoke it.")
    assert note.text == "The key is [REDACTED:github_token], revoke it."
    assert TOKEN not in str(list(AuditEvent.objects.values()))
    with pytest.raises(Invalid):
        add_note(actor=actor_for_user(cast.infosec), incident=incident, text=" ")


def test_containing_stops_the_agent_at_once_and_closing_lets_it_go(cast: Cast) -> None:
    token, actor = factories.make_token(cast.agent), actor_for_user(cast.infosec)
    incident = make_incident(cast)
    contain_agent(actor=actor, incident=incident, reason="The key can write.")
    assert Incident.objects.get().state == "contained"
    answer = Api(token).get("/me")
    assert (answer.status_code, answer.json()["code"]) == (403, "agent_contained")
    assert incident.number in answer.json()["detail"]
    assert AgentToken.objects.filter(revoked_at=None).exists()

    move_incident(actor=actor, incident=incident, to="resolved", reason="Revoked; the re-scan is clean.")
    assert Api(token).get("/me").status_code == 200
    assert Incident.objects.get().hold is None


def test_an_agent_held_for_two_incidents_is_free_when_both_let_go(cast: Cast) -> None:
    actor = actor_for_user(cast.infosec)
    one, two = make_incident(cast), make_incident(cast, kind="unsafe_command")
    for incident in (one, two):
        contain_agent(actor=actor, incident=incident, reason="x")
    assert Hold.objects.in_force().count() == 1
    release_agent(actor=actor, incident=one, reason="done")
    assert Hold.objects.in_force().count() == 1
    with pytest.raises(Conflict, match="holds no agent"):
        release_agent(actor=actor, incident=one, reason="again")
    release_agent(actor=actor, incident=two, reason="done")
    assert not Hold.objects.in_force().exists()
    assert Incident.objects.filter(state="contained").count() == 2


def test_there_must_be_an_agent_and_an_open_incident_to_contain(cast: Cast) -> None:
    actor, nobody = actor_for_user(cast.infosec), make_incident(cast, agent="")
    with pytest.raises(Conflict) as refusal:
        contain_agent(actor=actor, incident=nobody, reason="x")
    assert refusal.value.code == "no_agent"
    closed = make_incident(cast, kind="unsafe_command")
    move_incident(actor=actor, incident=closed, to="accepted", reason="x")
    with pytest.raises(Conflict) as refusal:
        contain_agent(actor=actor, incident=closed, reason="x")
    assert refusal.value.code == "incident_closed"
    assert not Hold.objects.exists()

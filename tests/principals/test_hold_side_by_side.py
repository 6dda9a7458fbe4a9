"""Holds that meet: a longer one is not lost in a shorter, and of two who lift at once both are right."""

from datetime import datetime, timedelta

import pytest
from django.test import Client

from portal.core import clock
from portal.core.models import LiveEvent
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.engine import scopes, tokens
from principals.models import Hold
from tests import factories
from tests.conftest import Cast
from tests.portal.permission_table import OPERATIONS
from tests.portal.permission_world import paths_of

pytestmark = pytest.mark.django_db


def hold(kind: str, pk: int, until: datetime | None = None) -> Hold:
    return principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind=kind, subject_id=pk, kind=Hold.Kind.FLOOD, code="flood", reason="Too much.",
        until=until,
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "whose"), [("user", "colleague"), ("lab", "lab")])
def test_the_agents_that_a_hold_on_a_person_or_lab_stops_hear_of_it(cast: Cast, kind: str, whose: str) -> None:
    retired = factories.make_agent(cast.lab, cast.colleague, status="retired")
    placed = hold(kind, getattr(cast, whose).pk)
    principal_services.lift_hold(actor=SYSTEM_ACTOR, hold=placed, reason="Over.")
    for told in LiveEvent.objects.filter(name__in=("hold.placed", "hold.lifted")):
        assert f"agent:{cast.agent.pk}" in told.topics
        assert not {f"agent:{retired.pk}", f"agent:{cast.foreign_agent.pk}"}.intersection(told.topics)


def test_a_longer_hold_is_not_lost_in_an_equal_one_that_lapses_before(cast: Cast) -> None:
    soon, later = clock.now() + timedelta(minutes=1), clock.now() + timedelta(hours=1)
    placed = [hold("user", cast.pi.pk, until) for until in (soon, later, None, soon, later, None)]
    assert len({one.pk for one in placed}) == 3
    assert {one.pk for one in placed[3:]} <= {one.pk for one in placed[:3]}
    lasting = Hold.objects.in_force().on("user", cast.pi.pk).filter(until=None)
    assert lasting.count() == 1


def test_one_that_somebody_else_lifted_meanwhile_is_no_failure(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    hold("user", cast.pi.pk, clock.now() + timedelta(minutes=1))
    hold("user", cast.pi.pk)
    first = principal_services.holds.lift_hold

    def lift_twice(**options: object) -> Hold:
        monkeypatch.setattr(principal_services.holds, "lift_hold", first)
        first(**options)
        return first(**options)

    monkeypatch.setattr(principal_services.holds, "lift_hold", lift_twice)
    lifted = principal_services.lift_holds(
        actor=SYSTEM_ACTOR, subject_kind="user", subject_id=cast.pi.pk, kind=Hold.Kind.FLOOD, reason="over"
    )
    assert lifted == 1
    assert not Hold.objects.in_force().exists()


@pytest.mark.parametrize("subject", ["user", "agent", "lab"])
def test_no_operation_answers_the_agent_that_a_hold_stops(cast: Cast, subject: str) -> None:
    agent = cast.agent
    token = factories.make_token(agent, *(scope.name for scope in scopes.scopes_for(tokens.TokenKind.AGENT)))
    client = Client(headers={"authorization": f"Bearer {token}"})
    asked = [row for row in OPERATIONS if row.expect("none") == 401]
    paths = {(row.method, row.path): paths_of(cast, row.path) for row in asked}
    hold(subject, {"user": agent.owner_id, "agent": agent.pk, "lab": agent.lab_id}[subject])
    for row in asked:
        answer = client.generic(row.method, paths[row.method, row.path], "{}", content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (403, "flood"), row

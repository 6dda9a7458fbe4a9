"""Two at once: each sees the other, whichever comes first."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier, Event
from typing import Any

import pytest
from django.db import connection, transaction

from policies import services as policy_services
from policies.models import AupAcceptance
from portal.core.errors import Conflict
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, AgentSession, AgentToken, Hold, SessionDeclaration
from principals.services import DeclaredSession
from telemetry import services as telemetry_services
from tests import factories
from tests.conftest import Cast
from tests.telemetry.activity_batches import agent_session, minute, record

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]


def both(*acts: Callable[[], Any]) -> list[Any]:
    """Run each act in a thread of its own, all started together; a conflict is an outcome."""
    together = Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        try:
            together.wait(timeout=60)
            return act()
        except Conflict as error:
            return error.code
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def test_two_equal_holds_are_one(cast: Cast) -> None:
    place: dict[str, Any] = {
        "actor": SYSTEM_ACTOR, "subject_kind": "agent", "subject_id": cast.agent.pk, "kind": Hold.Kind.FLOOD,
        "code": "flood", "reason": "too much",
    }  # fmt: skip
    both(*[lambda: principal_services.place_hold(**place)] * 4)
    assert Hold.objects.on("agent", cast.agent.pk).count() == 1


def test_an_approval_waits_for_the_one_that_is_being_given(cast: Cast) -> None:
    agent = factories.make_agent(cast.lab, cast.pi, autonomy="unattended", status="requested", partitions=["gpu"])
    given, other_ended = Event(), Event()

    def as_pi() -> None:
        with transaction.atomic():
            principal_services.approve_agent(actor=factories.actor_of(cast.pi), agent=agent)
            given.set()
            # The other waits for our commit; were it not to, it would end now and neither saw the other.
            other_ended.wait(timeout=1)

    def as_staff() -> None:
        try:
            given.wait(timeout=60)
            approver = factories.actor_of(cast.staff)
            principal_services.approve_agent(actor=approver, agent=Agent.objects.get(pk=agent.pk))
        finally:
            other_ended.set()

    both(as_pi, as_staff)
    assert agent.approvals.count() == 2
    assert Agent.objects.get(pk=agent.pk).status == "active"


@pytest.mark.parametrize("turn", range(4))
def test_an_acceptance_never_lifts_the_hold_of_a_newer_policy(cast: Cast, turn: int) -> None:
    agent = factories.make_agent(cast.lab, cast.pi, held=True)
    old = policy_services.current_aup()
    source = "grace_days = 0\n" + old.source.replace(f'"{old.version}"', '"2099.1"', 1)
    pi, staff = factories.actor_of(cast.pi), factories.actor_of(cast.staff)
    both(
        lambda: policy_services.accept_aup(actor=pi, agent=agent, version=old.version),
        lambda: policy_services.publish_aup(actor=staff, source=source),
    )
    assert policy_services.current_aup().version == "2099.1"
    assert not AupAcceptance.objects.filter(agent=agent, version__version="2099.1").exists()
    assert Hold.objects.in_force().on("agent", agent.pk).filter(kind=Hold.Kind.AUP).exists()


def test_a_session_declared_and_seen_at_once_is_one(cast: Cast) -> None:
    started = minute(30)
    said = DeclaredSession(login="colleague", host="login1", kind="agent", harness="claude-code", started=started)
    for number in range(4):
        declared = replace(said, started=started + timedelta(seconds=number, minutes=-40 * number))
        process = agent_session(id=f"{number}-1", start=started - timedelta(minutes=40 * number), last=minute(9))
        both(
            lambda declared=declared: telemetry_services.declare_sessions(
                actor=SYSTEM_ACTOR, cluster=cast.cluster, sessions=[declared]
            ),
            lambda process=process: record(cast.cluster, sessions=[process]),
        )  # fmt: skip
        assert AgentSession.objects.count() == SessionDeclaration.objects.count() == number + 1


def test_no_token_is_made_while_its_agent_passes_on(cast: Cast) -> None:
    giver, taker = factories.actor_of(cast.colleague), factories.actor_of(cast.manager)
    asked = principal_services.ask_handover(actor=giver, agent=Agent.objects.get(pk=cast.agent.pk), taker=cast.manager)
    passed, other_ended = Event(), Event()

    def as_taker() -> None:
        with transaction.atomic():
            principal_services.agree_handover(actor=taker, handover=asked)
            passed.set()
            other_ended.wait(timeout=1)  # it waits for our commit; were it not to, its token would be left

    def as_giver() -> None:
        try:
            passed.wait(timeout=60)
            principal_services.issue_agent_token(actor=giver, agent=cast.agent)
        finally:
            other_ended.set()

    assert both(as_taker, as_giver) == [None, "agent_changed"]
    assert not AgentToken.objects.filter(revoked_at=None).exists()

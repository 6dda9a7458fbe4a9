"""Reminders come at 30, 7 and 1 days, each once; a lab rolls over in one act."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import selectors
from principals import services as principal_services
from principals.events import registration_ends
from principals.models import Agent
from tests import factories
from tests.conftest import Cast


def _ends_in(agent: Agent, days: float) -> None:
    Agent.objects.filter(pk=agent.pk).update(expires=clock.now() + timedelta(days=days))


def _told(act) -> list[tuple[int, int]]:  # type: ignore[no-untyped-def]
    heard: list[tuple[int, int]] = []

    def hear(agent_id: int, days: int, **_: object) -> None:
        heard.append((agent_id, days))

    registration_ends.connect(hear)
    try:
        act()
    finally:
        registration_ends.disconnect(hear)
    return heard


def _remind() -> list[tuple[int, int]]:
    return _told(principal_services.remind_of_renewals)


def test_one_end_is_announced_at_thirty_seven_and_one(cast: Cast) -> None:
    expires = clock.now() + timedelta(days=80)
    Agent.objects.filter(pk=cast.agent.pk).update(expires=expires)
    told = {}
    for days in (31, 30, 20, 7, 3, 1, 0.2):
        with clock.at(expires - timedelta(days=days)):
            told[days] = [step for agent, step in _remind() if agent == cast.agent.pk]
    assert told == {31: [], 30: [30], 20: [], 7: [7], 3: [], 1: [1], 0.2: []}


def test_who_was_not_told_for_a_while_gets_one_word(cast: Cast) -> None:
    _ends_in(cast.agent, 0.5)
    assert _remind() == [(cast.agent.pk, 1)]
    assert _remind() == []


def test_a_renewed_one_is_told_of_its_new_end(cast: Cast) -> None:
    _ends_in(cast.agent, 5)
    assert _remind() == [(cast.agent.pk, 7)]
    cast.agent.refresh_from_db()
    principal_services.renew_agent(actor=factories.actor_of(cast.colleague), agent=cast.agent)
    assert cast.agent.expires > clock.now() + timedelta(days=179)
    assert _remind() == []
    with clock.at(cast.agent.expires - timedelta(days=29)):
        assert _remind() == [(cast.agent.pk, 30)]


@pytest.mark.parametrize("status", ["requested", "suspended", "retired"])
def test_only_active_ones_end(cast: Cast, status: str) -> None:
    _ends_in(cast.agent, 5)
    Agent.objects.filter(pk=cast.agent.pk).update(status=status)
    assert _remind() == []


def test_what_a_receiver_fails_at_is_told_again(cast: Cast) -> None:
    _ends_in(cast.agent, 5)

    def fail(**_: object) -> None:
        raise OSError("no room")

    registration_ends.connect(fail)
    try:
        with pytest.raises(OSError, match="no room"):
            principal_services.remind_of_renewals()
    finally:
        registration_ends.disconnect(fail)
    assert _remind() == [(cast.agent.pk, 7)]


def test_what_is_due_costs_two_queries(cast: Cast, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    for _ in range(5):
        _ends_in(factories.make_agent(cast.lab, cast.colleague), 5)
    with django_assert_num_queries(2):
        assert len(selectors.reminders_due(clock.now())) == 5


def test_a_retired_agent_is_not_renewed(cast: Cast) -> None:
    Agent.objects.filter(pk=cast.agent.pk).update(status="retired")
    cast.agent.refresh_from_db()
    with pytest.raises(Conflict):
        principal_services.renew_agent(actor=factories.actor_of(cast.pi), agent=cast.agent)


def test_a_pi_rolls_the_lab_over(cast: Cast) -> None:
    old, idle = factories.make_agent(cast.lab, cast.manager), factories.make_agent(cast.lab, cast.manager)
    end = clock.now() + timedelta(days=150)
    done = principal_services.roll_over_lab(
        actor=factories.actor_of(cast.pi), lab=cast.lab, expires=end, renew=[cast.agent.pk, cast.foreign_agent.pk],
        retire=[old.pk],
    )  # fmt: skip
    assert (done.renewed, done.retired, done.left) == (1, 1, 1)
    states = {agent.pk: (agent.status, agent.expires == end) for agent in Agent.objects.all()}
    assert states[cast.agent.pk] == ("active", True)
    assert states[old.pk] == ("retired", False)
    assert states[idle.pk] == states[cast.foreign_agent.pk] == ("active", False)
    assert AuditEvent.objects.get(verb="lab.roll_over").payload["after"]["renewed"] == ["okafor-docking"]


@pytest.mark.parametrize("who", ["colleague", "outsider", "auditor"])
def test_nobody_else_rolls_it_over(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        principal_services.roll_over_lab(
            actor=factories.actor_of(getattr(cast, who)), lab=cast.lab, expires=clock.now() + timedelta(9),
            renew=[cast.agent.pk], retire=[],
        )  # fmt: skip


def test_not_both_and_not_for_ever(cast: Cast) -> None:
    for expires, retire in ((clock.now() + timedelta(400), []), (clock.now() + timedelta(9), [cast.agent.pk])):
        with pytest.raises(Invalid):
            principal_services.roll_over_lab(
                actor=factories.actor_of(cast.pi), lab=cast.lab, expires=expires, renew=[cast.agent.pk], retire=retire
            )

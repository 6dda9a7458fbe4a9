"""Reminders come at 30, 7 and 1 days, each once; a lab rolls over in one act."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import selectors
from principals import services as principal_services
from principals.models import Agent, Notice
from principals.services import renewals
from tests import factories
from tests.conftest import Cast, sign_in


def _ends_in(agent: Agent, days: float) -> None:
    Agent.objects.filter(pk=agent.pk).update(expires=clock.now() + timedelta(days=days))


def _remind() -> list[tuple[int, int]]:
    """Remind; return of which agents it told new people, with the step."""
    before = set(Notice.objects.values_list("pk", flat=True))
    told = principal_services.remind_of_renewals()
    keys = Notice.objects.filter(kind="agent_ending").exclude(pk__in=before).values_list("key", flat=True)
    steps = sorted({(int(pk), int(days)) for _, pk, _, days in (key.split(":") for key in keys)})
    assert told == len(steps)
    return steps


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


def test_what_could_not_be_told_is_told_again(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    _ends_in(cast.agent, 5)

    def fail(**_: object) -> None:
        raise OSError("no room")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="no room"):
        patched.setattr(renewals, "tell_of_ending_registration", fail)
        principal_services.remind_of_renewals()
    assert _remind() == [(cast.agent.pk, 7)]


def test_without_mail_it_stands_under_notices(cast: Cast, settings) -> None:  # type: ignore[no-untyped-def]
    assert not settings.MAIL.is_on
    _ends_in(cast.agent, 29)
    _remind()
    row = Notice.objects.get()
    assert (row.person, row.mail_at) == (cast.colleague, None)
    assert "okafor-docking ends on" in sign_in(cast.colleague).get("/notices/").content.decode()


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

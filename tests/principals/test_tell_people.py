"""Who is told of holds, of agents that wait, and of tokens that end."""

from datetime import timedelta

import pytest

from portal.core import clock
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, AgentToken, Hold, Notice
from principals.services import kill_switches as switches
from principals.services.agents import Registration
from principals.services.notices import telling
from tests import factories
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


def told(kind: str) -> set[str]:
    return set(Notice.objects.filter(kind=kind).values_list("person__username", flat=True))


@pytest.mark.parametrize(
    ("kind", "which", "people"),
    [
        ("agent", "okafor-docking", {"pi", "colleague"}),
        ("owner", "colleague", {"pi", "colleague"}),
        ("lab", "okafor", {"pi", "colleague"}),
        ("harness", "claude-code", {"pi", "colleague", "outsider"}),
        ("all", "", {"pi", "colleague", "outsider"}),
    ],
    ids=["agent", "owner", "lab", "harness", "all"],
)
def test_a_kill_switch_tells_owners_and_pis(cast: Cast, kind: str, which: str, people: set[str]):
    until = clock.now() + timedelta(hours=1)
    actor = factories.actor_of(cast.staff)
    switch = switches.pull(
        actor=actor, target=switches.find_target(kind, which), reason="It polls.", until=until
    )  # fmt: skip
    assert told("hold_placed") == people
    text = Notice.objects.filter(person=cast.pi).get().text
    assert "It polls." in text and telling.local_time(until) in text and "Staff or InfoSec end this" in text
    switches.end(actor=actor, switch=switch, reason="It was mended.")
    assert told("hold_lifted") == people
    assert "It was mended." in Notice.objects.filter(person=cast.pi, kind="hold_lifted").get().text


def test_a_drill_tells_nobody(cast: Cast):
    until = clock.now() + timedelta(hours=1)
    target = switches.find_target("all")
    switches.pull(actor=factories.actor_of(cast.staff), target=target, reason="x", until=until, is_drill=True)
    assert not Notice.objects.exists()


def test_a_persons_own_hold_is_told_to_them(cast: Cast):
    principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind="user", subject_id=cast.colleague.pk, kind=Hold.Kind.SUSPENSION, code="left",
        reason="They asked for it.",
    )  # fmt: skip
    assert told("hold_placed") == {"colleague", "pi"}


def test_an_equal_hold_is_told_once(cast: Cast):
    for _ in range(2):
        principal_services.place_hold(
            actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=cast.agent.pk, kind=Hold.Kind.FLOOD, code="flood",
            reason="Too many questions.",
        )  # fmt: skip
    assert Notice.objects.filter(person=cast.pi).count() == 1


def register(cast: Cast, who: str):  # type: ignore[no-untyped-def]
    registration = Registration(
        name=f"okafor-{who}", harness="codex", purpose="Tests.", expires=clock.now() + timedelta(days=30)
    )
    person = getattr(cast, who)
    return principal_services.register_agent(
        actor=factories.actor_of(person), lab=cast.lab, owner=person, registration=registration
    )


def test_an_agent_that_waits_is_told_to_those_who_approve(cast: Cast):
    agent = register(cast, "colleague")
    assert told("agent_waiting") == {"pi", "manager"}
    notice = Notice.objects.filter(person=cast.pi).get()
    assert (notice.url, notice.is_digest) == (agent.get_absolute_url(), True)


def test_a_pis_own_waits_for_nobody_in_the_lab(cast: Cast):
    register(cast, "pi")
    assert not Notice.objects.exists()


def test_a_token_that_ends_is_told_once_to_its_owner(cast: Cast):
    token = factories.token_row(factories.make_token(cast.agent))
    assert telling.tell_of_ending_tokens() == 0
    with clock.at(token.expires - timedelta(days=2)):
        assert [telling.tell_of_ending_tokens(), telling.tell_of_ending_tokens()] == [1, 0]
    assert told("token_ending") == {"colleague"}
    assert token.key in Notice.objects.get().text


def test_a_token_that_is_revoked_is_not_told_of(cast: Cast):
    token = factories.token_row(factories.make_token(cast.agent))
    principal_services.revoke_agent_token(actor=factories.actor_of(cast.pi), token=token)
    with clock.at(token.expires - timedelta(days=2)):
        assert telling.tell_of_ending_tokens() == 0


def test_nobody_is_told_of_tokens_that_end_every_day_or_were_rolled_over(cast: Cast) -> None:
    now = clock.now()
    for how in (AgentToken.How.MUNGE, AgentToken.How.DEVICE, AgentToken.How.SUB_AGENT):
        factories.make_token(cast.agent)
        AgentToken.objects.filter(how=AgentToken.How.MADE).update(how=how)
    old = factories.token_row(factories.make_token(cast.agent))
    principal_services.rotate_agent_token(actor=factories.actor_of(cast.colleague), token=old)
    AgentToken.objects.update(created=now - timedelta(hours=11), expires=now + timedelta(hours=1))
    AgentToken.objects.filter(replaces=old).update(expires=now + timedelta(days=60))
    assert telling.tell_of_ending_tokens() == 0


def test_the_end_of_a_registration_is_told_once_a_step_and_to_the_pi_on_the_last_day(cast: Cast):
    steps = [telling.tell_of_ending_registration(agent=cast.agent, days=days) for days in (30, 30, 7, 1)]
    assert steps == [1, 0, 1, 2]
    assert told("agent_ending") == {"colleague", "pi"}


def test_the_labs_yes_passes_it_to_staff_and_theirs_is_told_to_its_owner(cast: Cast):
    agent = register(cast, "colleague")
    Agent.objects.filter(pk=agent.pk).update(autonomy=Agent.Autonomy.UNATTENDED)  # 3 points: staff look, too
    agent.refresh_from_db()
    principal_services.approve_agent(actor=factories.actor_of(cast.pi), agent=agent)
    assert told("agent_waiting") == {"pi", "manager", "staff"} and not told("agent_approved")
    principal_services.approve_agent(actor=factories.actor_of(cast.staff), agent=agent)
    assert told("agent_approved") == {"colleague"}

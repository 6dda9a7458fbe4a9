"""A new version: grace, reminders, a hold with the link that fixes it, and accepting, which lifts it."""

from datetime import timedelta

import pytest
from django.conf import settings

from policies import selectors as policy_selectors
from policies import services as policy_services
from policies.models import AupAcceptance, AupPersonAcceptance, AupVersion
from policies.selectors import Stage
from policies.tasks import hold_lapsed_aup
from portal.core import clock
from portal.core.errors import Conflict, NotAllowed
from portal.core.models import AuditEvent
from principals import selectors
from principals import services as principal_services
from principals.models import Agent, Hold
from tests import factories
from tests.conftest import Api, Cast

GRACE = 14


@pytest.fixture
def published(cast: Cast) -> AupVersion:
    """Version 2026-12 with fourteen days of grace; the cast's agents have the one before."""
    first = policy_services.current_aup()
    for agent in (cast.agent, cast.foreign_agent):
        policy_services.accept_aup(actor=factories.actor_of(agent.owner), agent=agent, version=first.version)
    source = first.source.replace('version = "2026-06"', 'version = "2026-12"')
    return policy_services.publish_aup(actor=factories.actor_of(cast.staff), source=f"grace_days = {GRACE}\n{source}")


def _held() -> set[str]:
    held = Hold.objects.in_force().filter(kind=Hold.Kind.AUP).values("subject_id")
    return set(Agent.objects.filter(pk__in=held).values_list("name", flat=True))


def test_in_its_grace_nobody_is_held(published: AupVersion) -> None:
    with clock.at(published.holds_from - timedelta(seconds=1)):
        assert hold_lapsed_aup() == 0
    assert _held() == set()


def test_after_its_grace_agents_without_it_are_held_once(cast: Cast, published: AupVersion) -> None:
    policy_services.accept_aup(actor=factories.actor_of(cast.pi), agent=cast.agent, version="2026-12")
    retired = factories.make_agent(cast.lab, cast.colleague, "okafor-old", status=Agent.Status.RETIRED)
    with clock.at(published.holds_from):
        assert [hold_lapsed_aup() for _ in range(3)] == [1, 0, 0]
        assert _held() == {cast.foreign_agent.name}
        assert not selectors.holds_on_agent(retired).exists()
        assert Hold.objects.filter(kind=Hold.Kind.AUP).count() == 1


def test_a_held_agents_token_answers_403_with_the_link_and_works_again_once_accepted(
    cast: Cast, published: AupVersion
) -> None:
    api = Api(factories.make_token(cast.agent))
    with clock.at(published.holds_from):
        assert api.get("/me").status_code == 200
        hold_lapsed_aup()
        refused = api.get("/me")
        said = refused.json()
        assert (refused.status_code, said["code"]) == (403, "aup_required")
        assert f"{settings.BASE_URL}{cast.agent.get_absolute_url()}" in said["remedy"]
        policy_services.accept_aup_for_mine(actor=factories.actor_of(cast.colleague), version="2026-12")
        assert api.get("/me").status_code == 200
        assert hold_lapsed_aup() == 0
        assert api.get("/me").status_code == 200


def test_more_agents_than_one_transaction_holds_are_all_held(cast: Cast, published: AupVersion, monkeypatch) -> None:
    monkeypatch.setattr("policies.services.aup.AT_ONCE", 2)
    for _ in range(3):
        factories.make_agent(cast.lab, cast.colleague)
    with clock.at(published.holds_from):
        assert hold_lapsed_aup() == 5


def test_a_version_of_tomorrow_is_accepted_today_and_its_grace_starts_tomorrow(cast: Cast) -> None:
    day = (clock.now() + timedelta(days=30)).date()
    source = policy_services.current_aup().source.replace('version = "2026-06"', 'version = "2027-01"')
    source = source.replace("effective = 2026-06-01", f"effective = {day}\ngrace_days = 2")
    version = policy_services.publish_aup(actor=factories.actor_of(cast.staff), source=source)
    assert (version.effective.date(), version.holds_from - version.effective) == (day, timedelta(days=2))
    assert not AupVersion.objects.in_force(clock.now()).filter(pk=version.pk).exists()
    policy_services.accept_aup(actor=factories.actor_of(cast.pi), agent=cast.agent, version="2027-01")
    with clock.at(clock.now() + timedelta(days=1)):
        hold_lapsed_aup()  # of the first version: a newer one is as good
        assert cast.agent.name not in _held()


@pytest.mark.parametrize(
    ("left", "stage"),
    [
        (timedelta(days=GRACE), Stage.PUBLISHED),
        (timedelta(days=7), Stage.WEEK_LEFT),
        (timedelta(hours=24), Stage.DAY_LEFT),
        (timedelta(), Stage.HELD),
    ],
    ids=["published", "week", "day", "held"],
)
def test_people_are_due_once_a_stage(cast: Cast, published: AupVersion, left: timedelta, stage: Stage) -> None:
    policy_services.accept_aup(actor=factories.actor_of(cast.outsider), agent=cast.foreign_agent, version="2026-12")
    (due,) = policy_selectors.people_due(published.holds_from - left)
    assert (due.user_id, due.agent_ids, due.stage) == (cast.colleague.pk, (cast.agent.pk,), stage)
    assert due.key == f"aup:2026-12:{cast.colleague.pk}:{stage.value}"


def test_asking_who_is_due_costs_two_questions(cast: Cast, published: AupVersion, django_assert_num_queries) -> None:
    for _ in range(4):
        factories.make_agent(cast.lab, cast.colleague)
    with django_assert_num_queries(2):
        assert len(policy_selectors.people_due(clock.now())) == 2


def test_accepting_for_ones_own_leaves_other_peoples_agents_alone(cast: Cast, published: AupVersion) -> None:
    other = factories.make_agent(cast.lab, cast.manager)
    left = factories.make_agent(cast.other_lab, cast.colleague)  # a lab that the owner has left
    accepted = policy_services.accept_aup_for_mine(actor=factories.actor_of(cast.colleague), version="2026-12")
    assert [each.agent for each in accepted] == [cast.agent]
    assert not AupAcceptance.objects.filter(agent__in=(other, left), version=published).exists()
    person = AupPersonAcceptance.objects.get(version=published)
    assert (person.user, person.digest, person.how) == (cast.colleague, published.digest, "aup_page")


def test_who_answers_for_no_agent_leaves_no_row(cast: Cast, published: AupVersion) -> None:
    with pytest.raises(Conflict) as caught:
        policy_services.accept_aup_for_mine(actor=factories.actor_of(cast.manager), version="2026-12")
    assert caught.value.code == "no_agents"
    assert not AupPersonAcceptance.objects.filter(user=cast.manager).exists()


def test_an_agent_accepts_nothing(cast: Cast, published: AupVersion) -> None:
    from principals.permissions import actor_for_agent

    actor = actor_for_agent(factories.token_row(factories.make_token(cast.agent)))
    with pytest.raises(NotAllowed):
        policy_services.accept_aup_for_mine(actor=actor, version="2026-12")
    with pytest.raises(NotAllowed):
        policy_services.accept_aup(actor=actor, agent=cast.agent, version="2026-12")


def test_a_pi_sees_who_of_the_lab_is_missing(cast: Cast, published: AupVersion) -> None:
    theirs = factories.make_agent(cast.lab, cast.manager)
    policy_services.accept_aup_for_mine(actor=factories.actor_of(cast.manager), version="2026-12")
    missing, done = policy_selectors.accepting_in(cast.lab, published)
    assert (missing.username, missing.waiting, missing.accepted_at) == ("colleague", (cast.agent,), None)
    assert (done.username, done.waiting) == (theirs.owner.username, ())
    assert done.accepted_at is not None


def test_an_agent_that_passed_on_waits_for_the_yes_of_its_new_owner(cast: Cast) -> None:
    version = policy_services.current_aup()
    policy_services.accept_aup(actor=factories.actor_of(cast.colleague), agent=cast.agent, version=version.version)
    asked = principal_services.ask_handover(
        actor=factories.actor_of(cast.colleague), agent=cast.agent, taker=cast.manager
    )
    principal_services.agree_handover(actor=factories.actor_of(cast.manager), handover=asked)
    assert cast.agent in policy_selectors.agents_without(version)
    assert cast.manager.pk in {due.user_id for due in policy_selectors.people_due(clock.now())}
    waiting = {each.username: each.waiting for each in policy_selectors.accepting_in(cast.lab, version)}
    assert waiting[cast.manager.username] == (cast.agent,)

    policy_services.accept_aup_for_mine(actor=factories.actor_of(cast.manager), version=version.version)
    assert cast.agent not in policy_selectors.agents_without(version)
    assert AupAcceptance.objects.get(agent=cast.agent, owner=cast.manager).user == cast.manager
    said = AuditEvent.objects.filter(verb="aup.accept", object_kind="agent", object_id=str(cast.agent.pk))
    assert said.count() == 2

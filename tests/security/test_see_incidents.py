"""Everybody sees the incidents that are theirs to see: in lists, counts, details, exports and figures alike."""

import pytest

from principals.models import LabMembership, User
from principals.permissions import actor_for_agent, actor_for_user
from security import figures
from security.models import Finding, Incident, IncidentEvent
from security.selectors import IncidentFilter, incidents, state_counts, timeline_of
from security.services import add_note
from tests import factories
from tests.conftest import Cast
from tests.security.support import finding, make_incident, report

pytestmark = pytest.mark.sql
EVERY = frozenset({"own agent", "own login", "foreign agent", "no lab"})
# What each of the cast sees of the four incidents below.
SEES = {
    "pi": {"own agent", "own login"},
    "manager": {"own agent", "own login"},
    "colleague": {"own agent", "own login"},
    "outsider": {"foreign agent"},
    "staff": EVERY,
    "infosec": EVERY,
    "auditor": EVERY,
}


@pytest.fixture
def four(cast: Cast) -> Cast:
    make_incident(cast, title="own agent")
    make_incident(cast, title="own login", agent="")
    make_incident(cast, title="foreign agent", agent=cast.foreign_agent.name, login="")
    make_incident(cast, title="no lab", agent="", login="stranger")
    return cast


@pytest.mark.parametrize("who", SEES)
def test_rows_counts_and_figures_are_those_one_may_see(four: Cast, who: str) -> None:
    user: User = getattr(four, who)
    actor = actor_for_user(user)
    assert set(Incident.objects.visible_to(actor).values_list("title", flat=True)) == SEES[who]
    assert set(Finding.objects.visible_to(actor).values_list("title", flat=True)) == SEES[who]
    asked = IncidentFilter()
    assert {each.title for each in incidents(actor, asked)} == SEES[who]
    assert state_counts(actor, asked)["open"] == len(SEES[who])
    assert figures.open_incidents(actor) == figures.waiting(actor)[0] == len(SEES[who])
    assert sum(figures.by_kind(actor).values()) == len(SEES[who])


def test_a_member_who_is_not_concerned_sees_nothing(four: Cast) -> None:
    member = factories.make_user("bystander")
    LabMembership.objects.create(lab=four.lab, user=member, role=LabMembership.Role.MEMBER)
    assert not Incident.objects.visible_to(actor_for_user(member)).exists()


def test_agents_see_none_not_even_their_own(four: Cast) -> None:
    plain = factories.make_token(four.agent, "me:read", "lab:read")
    actor = actor_for_agent(factories.token_row(plain))
    assert not Incident.objects.visible_to(actor).exists()
    assert not Finding.objects.visible_to(actor).exists()


def test_notes_are_for_the_facility(four: Cast) -> None:
    incident = Incident.objects.get(title="own agent")
    add_note(actor=actor_for_user(four.infosec), incident=incident, text="Insider?")
    for who in SEES:
        actor = actor_for_user(getattr(four, who))
        told = [entry.note for entry in timeline_of(actor, incident, [])]
        assert ("Insider?" in told) == actor.sees_facility
    assert IncidentEvent.objects.filter(kind="note").count() == 1


def test_figures_count_what_their_rows_are(four: Cast) -> None:
    Incident.objects.filter(title="own login").update(state="resolved")
    report(four, finding(kind="unsafe_command", title="other kind"))
    actor = actor_for_user(four.infosec)
    for figure in figures.FIGURES.values():
        asked = IncidentFilter.read(dict(figure.query))
        assert figure.read(actor) == incidents(actor, asked).count(), figure.name
    assert figures.keys_this_month(actor) == 4
    assert figures.keys_resolved_this_month(actor) == 1

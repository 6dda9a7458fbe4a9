"""Pages that list what many write ask as many questions of sixteen rows as of two."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.core import clock
from principals import services as principal_services
from principals.models import Appeal, Hold, Notice, SessionClaim, User
from tests import factories
from tests.conftest import Cast

MOST = 16


def _agents(cast: Cast, number: int) -> None:
    for index in range(number):
        agent = factories.make_agent(cast.lab, cast.colleague, f"grown-{number}-{index}")
        principal_services.place_hold(
            actor=factories.actor_of(cast.staff), subject_kind=Hold.Subject.AGENT, subject_id=agent.pk,
            kind=Hold.Kind.CONTAINMENT, code="contained", reason="A test.",
        )  # fmt: skip
        SessionClaim.objects.create(agent=cast.agent, by=cast.colleague)
        hold = Hold.objects.get(subject_id=agent.pk)
        Appeal.objects.create(
            person=cast.colleague, hold=hold, about="A hold", reason="No.", filed=clock.now(),
            due=clock.now() + timedelta(days=5),
        )  # fmt: skip
        Notice.objects.create(person=cast.colleague, kind="hold_placed", title=f"Held {index}")


def _asked(person: User, path: str) -> int:
    client = Client()
    client.force_login(person)
    client.get(path)  # what is kept for a minute
    with CaptureQueriesContext(connection) as asked:
        assert client.get(path).status_code == 200
    return len(asked)


@pytest.mark.parametrize(
    ("who", "path"),
    [
        ("colleague", "/notices/"),
        ("colleague", "/held/"),
        ("colleague", "/agents/{agent}/"),
        ("staff", "/appeals/"),
        ("pi", "/aup/"),
        ("staff", "/aup/"),
        ("pi", "/my-lab/okafor/roll-over/"),
    ],
)
def test_it_asks_no_more_of_many(cast: Cast, who: str, path: str) -> None:
    person, path = getattr(cast, who), path.format(agent=cast.agent.name)
    _agents(cast, 2)
    few = _asked(person, path)
    _agents(cast, MOST - 2)
    assert _asked(person, path) <= few

"""A person who is held changes nothing in the browser, reads on, and is told why."""

from datetime import timedelta

import pytest

from portal.core import clock
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Hold, ServiceToken, User
from tests import factories
from tests.conftest import Api, Cast, sign_in
from tests.portal.permission_table import PAGES
from tests.portal.permission_world import paths_of

pytestmark = pytest.mark.django_db
REASON = "A key of this account was exposed."
# The choice of colours and the sign-in itself belong to whoever sits there; to appeal is what is left to them.
OPEN = {"/theme/", "/sign-in/", "/sign-in/saml/acs/", "/held/appeal/"}


def hold(person: User, **options: object) -> Hold:
    return principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind=Hold.Subject.USER, subject_id=person.pk, kind=Hold.Kind.CONTAINMENT,
        code="contained", reason=REASON, **options,
    )  # fmt: skip


@pytest.mark.parametrize("role", ["pi", "staff", "infosec"])
def test_every_form_is_refused(cast: Cast, role: str) -> None:
    person = getattr(cast, role)
    hold(person)
    client = sign_in(person)
    forms = [row.path for row in PAGES if row.method == "POST" and row.path not in OPEN]
    assert forms
    answers = {path: client.post(paths_of(cast, path)) for path in forms}
    assert {path for path, answer in answers.items() if answer.status_code != 403} == set()
    assert all(REASON in answer.content.decode() for answer in answers.values())


def test_it_leaves_the_service_accounts_running_on_purpose(cast: Cast) -> None:
    """They are the site's: telemetry does not stop with whoever made their token, nor with a lab."""
    token = factories.make_service_token("ingest:sessions")
    ServiceToken.objects.update(created_by=cast.pi)
    hold(cast.pi)
    principal_services.place_hold(
        actor=SYSTEM_ACTOR, subject_kind=Hold.Subject.LAB, subject_id=cast.lab.pk, kind=Hold.Kind.CONTAINMENT,
        code="contained", reason=REASON,
    )  # fmt: skip
    session = {"host": "login01", "user": "pi", "harness": "codex", "start": "2026-07-01T00:00:00Z"}
    answer = Api(token).post("/ingest/sessions", {"cluster": "aster", "sessions": [session]})
    assert (answer.status_code, answer.json()["results"][0]["outcome"]) == (200, "created")


def test_the_refusal_says_why_and_what_lifts_it(cast: Cast) -> None:
    hold(cast.pi, remedy="Rotate the key and tell InfoSec.")
    words = sign_in(cast.pi).post("/lessons/record/").content.decode()
    assert "Your account is held, so nothing was changed." in words
    assert REASON in words and "Rotate the key and tell InfoSec." in words


def test_one_without_a_remedy_names_who_lifts_it(cast: Cast) -> None:
    hold(cast.pi)
    assert "staff to lift the hold" in sign_in(cast.pi).post("/lessons/record/").content.decode()


def test_reading_and_signing_in_and_out_stay_open(settings) -> None:  # type: ignore[no-untyped-def]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    person = factories.make_user("alice", password="correct horse battery")
    hold(person)
    client = sign_in(None)
    assert client.post("/sign-in/", {"username": "alice", "password": "correct horse battery"}).status_code == 302
    assert {client.get(path).status_code for path in ("/my-lab/", "/agents/", "/jobs/", "/trials/")} == {200}
    assert client.post("/sign-out/").status_code == 302


def test_a_hold_that_is_lifted_lapsed_or_on_somebody_else_stops_nobody(cast: Cast) -> None:
    principal_services.lift_hold(actor=SYSTEM_ACTOR, hold=hold(cast.pi), reason="rotated")
    hold(cast.pi, until=clock.now() - timedelta(seconds=1))
    hold(cast.outsider)
    assert sign_in(cast.pi).post("/lessons/record/").status_code == 422

"""Every page asks who is there, and a refusal is a page with its remedy or an error on its form."""

import pytest
from django import forms
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from portal.core.errors import Conflict, NotAllowed, TooMany
from principals.models import User
from principals.web import PageRequest, add_refusal, page
from tests import factories

pytestmark = pytest.mark.sql


class Anonymous:
    is_authenticated = False


def ask(view, user: object, path: str = "/agents/?state=active", **extra: str) -> HttpResponse:
    request: HttpRequest = RequestFactory().get(path, **extra)
    request.user = user  # type: ignore[assignment]
    request.htmx = "HTTP_HX_REQUEST" in extra  # type: ignore[attr-defined]
    return view(request)


@page
def name_of(request: PageRequest) -> HttpResponse:
    return HttpResponse(request.actor.ref.label)


@pytest.fixture
def person(db: None) -> User:
    return factories.make_user("pi")


def test_a_stranger_signs_in_and_comes_back() -> None:
    answer = ask(name_of, Anonymous())
    assert (answer.status_code, answer["Location"]) == (302, "/sign-in/?next=/agents/%3Fstate%3Dactive")


def test_a_partial_request_takes_the_window_to_sign_in() -> None:
    where = {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": "https://desk.example/agents/?page=2"}
    answer = ask(name_of, Anonymous(), **where)
    assert answer["HX-Redirect"] == "/sign-in/?next=/agents/%3Fpage%3D2"


def test_the_view_gets_the_actor_of_the_person(person: User) -> None:
    assert ask(name_of, person).content == b"pi"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotAllowed("Only InfoSec does <this>.", remedy="Ask InfoSec."), 403),
        (Conflict("It was moved.", remedy="Reload."), 409),
    ],
)
def test_a_refusal_is_a_page_with_its_remedy(person: User, error: Exception, status: int) -> None:
    @page
    def refuse(request: PageRequest) -> HttpResponse:
        raise error

    answer = ask(refuse, person)
    text = answer.content.decode()
    assert answer.status_code == status
    assert error.remedy in text  # type: ignore[attr-defined]
    assert "<this>" not in text


def test_a_refusal_that_waiting_helps_says_how_long(person: User) -> None:
    @page
    def refuse(request: PageRequest) -> HttpResponse:
        raise TooMany("Slower.", retry_after_s=7)

    assert ask(refuse, person)["Retry-After"] == "7"


def test_a_refusal_lands_on_the_field_it_names_or_on_the_whole_form() -> None:
    class Ask(forms.Form):
        name = forms.CharField()

    form = Ask({"name": "x"})
    add_refusal(form, Conflict("Taken.", remedy="Try y.", extra={"field": "name"}))
    add_refusal(form, Conflict("Closed.", extra={"field": "elsewhere"}))
    assert form.errors == {"name": ["Taken. Try y."], "__all__": ["Closed."]}

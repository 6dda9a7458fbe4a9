"""The frame shows each role its own rail and survives pages that are not there yet."""

from types import SimpleNamespace

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import path

from portal.dashboard import shell
from portal.dashboard.errors import failed


def page(request):
    return HttpResponse()


def broken(request):
    raise RuntimeError("broken on purpose")


urlpatterns = [
    path("", page, name="overview"),
    path("incidents/", page, name="incidents"),
    path("incidents/mine/", page, name="my-lab"),
    path("theme/", page, name="theme"),
    path("broken/", broken),
]
handler404 = "portal.dashboard.errors.not_found"
handler500 = "portal.dashboard.errors.failed"


def user(**roles):
    return SimpleNamespace(is_authenticated=True, username="u0007", **roles)


def labels(groups):
    return [link.label for group in groups for link in group.links]


@pytest.fixture(autouse=True)
def registries(monkeypatch, settings):
    settings.ROOT_URLCONF = "tests.portal.test_shell"
    monkeypatch.setattr(shell, "_counts", {})
    monkeypatch.setattr(shell, "_labs", [])


def test_entries_nobody_serves_are_left_out():
    assert labels(shell.navigation(user(is_research_computing=True), "/")) == ["Overview", "Incidents"]


def test_a_member_sees_what_is_theirs_first():
    groups = shell.navigation(user(), "/incidents/mine/")
    assert groups[0].title == "Yours" and labels(groups)[0] == "My lab" and "Overview" not in labels(groups)


def test_the_longest_address_is_current():
    links = shell.navigation(user(is_infosec=True), "/incidents/INC-1/")[0].links
    assert [link.label for link in links if link.current] == ["Incidents"]


def test_a_count_shows_only_where_something_waits():
    shell.register_count("incidents", lambda who: shell.Count(9, due=True))
    assert shell.count_for("incidents", user()) == shell.Count(9, True)
    shell.register_count("incidents", lambda who: 0)
    assert shell.count_for("incidents", user()) is None and shell.count_for("unheard", user()) is None


def test_a_member_is_named_by_their_lab():
    request = RequestFactory().get("/")
    request.user = user()
    shell.register_labs(lambda who: ["Okafor Lab"])
    assert shell.Shell(request).role() == "Okafor Lab"


@pytest.mark.parametrize(("cookie", "theme"), [("dark", "dark"), ('"><script>', "system"), (None, "system")])
def test_the_theme_is_one_of_three(cookie, theme):
    request = RequestFactory().get("/")
    if cookie:
        request.COOKIES["theme"] = cookie
    assert shell.shell(request)["theme"] == theme


def test_a_missing_page_keeps_a_frame_and_says_what_to_do(client):
    answer = client.get("/nowhere/")
    assert answer.status_code == 404 and b"Nothing here" in answer.content and b"/static/portal.css" in answer.content


def test_a_broken_page_answers_without_its_frame(client):
    client.raise_request_exception = False
    answer = client.get("/broken/")
    assert answer.status_code == 500 and b"Something broke here" in answer.content


def test_a_broken_frame_gives_way_to_the_bare_page():
    request = RequestFactory().get("/")
    request.user = user()
    request.COOKIES = None  # the context processor fails on it
    answer = failed(request)
    assert answer.status_code == 500 and b"Something broke here" in answer.content

"""A front names who comes in a header: believed from its own addresses alone, by a real server on loopback."""

import http.client
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client, override_settings

from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import User
from principals.system_groups import groups_of
from tests import factories
from tests.e2e.portal_server import Portal, running_portal
from tests.support.openid import choices

HEADER = {"REMOTE_USER_HEADER": "X-Remote-User"}
FRONT = choices(REMOTE_USER_FROM="10.0.4.7", **HEADER)
COMES_BY = {"REMOTE_ADDR": "10.0.4.7"}


def _get(client: Client, login: str | None, **extra: str):  # type: ignore[no-untyped-def]
    headers = {} if login is None else {"X-Remote-User": login}
    return client.get("/aup/", headers=headers, **(COMES_BY | extra))


def _who(client: Client) -> str | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None


@pytest.fixture(autouse=True)
def _front() -> Iterator[None]:
    with override_settings(SIGN_IN=FRONT):
        yield


def test_the_front_signs_in_and_changes_who_it_is(db) -> None:
    for name in ("u0007", "u0008"):
        factories.make_user(name)
    client = Client()
    assert (_get(client, "u0007").status_code, _who(client)) == (200, "u0007")
    key = client.session.session_key
    assert _get(client, "u0007").status_code == 200 and client.session.session_key == key
    assert (_get(client, "u0008").status_code, _who(client)) == (200, "u0008")


def test_a_name_that_passed_on_is_its_new_owner(db) -> None:
    before = factories.make_user("u0007")
    client = Client()
    _get(client, "u0007")
    User.objects.filter(pk=before.pk).update(username="u0007-old")
    after = factories.make_user("u0007")
    _get(client, "u0007")
    assert client.session["_auth_user_id"] == str(after.pk)


def test_without_the_front_its_session_ends(db) -> None:
    factories.make_user("u0007")
    for login, extra in ((None, {}), ("u0007", {"REMOTE_ADDR": "10.0.4.8"})):
        client = Client()
        _get(client, "u0007")
        assert (_get(client, login, **extra).status_code, _who(client)) == (302, None)


@pytest.mark.parametrize("address", ["10.0.4.8", "127.0.0.1", "::1", "", "unix:"])
def test_nobody_else_is_believed(db, address) -> None:
    factories.make_user("u0007")
    client = Client()
    answer = _get(client, "u0007", REMOTE_ADDR=address, HTTP_X_FORWARDED_FOR="10.0.4.7")
    assert (answer.status_code, _who(client)) == (302, None)


def test_it_is_off_unless_it_is_set(db) -> None:
    factories.make_user("u0007")
    for found in (choices(), choices(**HEADER), choices(REMOTE_USER_FROM="10.0.4.7")):
        client = Client()
        with override_settings(SIGN_IN=found):
            assert (_get(client, "u0007").status_code, _who(client)) == (302, None)


@pytest.mark.parametrize("login", ["nobody-here", "", "u0007,root", "../u0007"])
def test_who_is_not_known_gets_a_sentence(db, login) -> None:
    factories.make_user("u0007")
    client = Client()
    answer = _get(client, login)
    assert (answer.status_code, _who(client)) == (403, None)
    assert b"nobody here is known" in answer.content


def test_a_local_session_gives_way(db) -> None:
    client = Client()
    client.force_login(factories.make_user("local"), backend="django.contrib.auth.backends.ModelBackend")
    assert (_get(client, "nobody-here").status_code, _who(client)) == (403, None)


def test_somebody_who_is_switched_off_falls_out(db) -> None:
    user = factories.make_user("u0007")
    client = Client()
    _get(client, "u0007")
    principal_services.set_person_active(actor=SYSTEM_ACTOR, user=user, active=False)
    assert _get(client, "u0007").status_code == 403


def test_roles_follow_the_groups_that_this_host_knows(db) -> None:
    """Of `root`, whom every host knows, in the group of that name."""
    assert "root" in groups_of("root") and groups_of("no-such-login") == frozenset()
    user = factories.make_user("root")
    found = choices(REMOTE_USER_FROM="10.0.4.7", SYSTEM_GROUPS="1", GROUP_ROLES="root=staff", **HEADER)
    with override_settings(SIGN_IN=found):
        _get(Client(), "root")
    user.refresh_from_db()
    assert user.is_research_computing and user.roles_from_groups == ["staff"]


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    before = dict(os.environ)
    os.environ |= {"GATEHOUSE_REMOTE_USER_HEADER": "X-Remote-User", "GATEHOUSE_REMOTE_USER_FROM": "127.0.0.1"}
    try:
        with running_portal(Path(tmp_path_factory.mktemp("front")) / "var") as running:
            running.run(
                "from tests import factories; factories.make_user('u0007', is_research_computing=True);"
                "factories.make_user('u0008'); print('{}')"
            )
            yield running
    finally:
        os.environ.clear()
        os.environ.update(before)


def _ask(portal: Portal, *headers: tuple[str, str]) -> tuple[int, str]:
    """Return the status and who the page says is signed in."""
    connection = http.client.HTTPConnection("127.0.0.1", portal.port)
    connection.putrequest("GET", "/aup/")
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    who = next((name for name in ("u0007", "u0008") if f'rail__who">{name}' in text), "")
    connection.close()
    return answer.status, who


@pytest.mark.outside
def test_through_a_real_server(portal) -> None:
    assert _ask(portal, ("X-Remote-User", "u0008")) == (200, "u0008")
    assert _ask(portal, ("x-remote-user", "u0008"), ("X-Forwarded-For", "203.0.113.9")) == (200, "u0008")
    assert _ask(portal)[0] == 302
    # What a client adds beside the front's own header, in spellings that a front lets through.
    assert _ask(portal, ("X_Remote_User", "u0007"))[0] == 302
    assert _ask(portal, ("X-Remote-User", "u0008"), ("X_Remote_User", "u0007")) == (200, "u0008")
    assert _ask(portal, ("X-Remote-User", "u0008"), ("X-Remote-User", "u0007"))[0] == 403
    assert _ask(portal, ("Remote-User", "u0007"), ("X-Remote", "u0007"))[0] == 302

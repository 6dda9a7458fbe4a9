"""A second factor: asked for after the password, sealed at rest, bounded, and written down."""

import base64
import hashlib
import hmac
import struct
import time

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.test import Client, override_settings

from portal.core.errors import Unauthenticated
from portal.core.models import AuditEvent
from portal.realtime import viewers
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import User
from tests import factories
from tests.support.openid import choices

PASSWORD = "correct horse battery"
APP, CODES = "/account/second-factor/app/", "/account/second-factor/codes/"


def totp(secret: str) -> str:
    """The code that an app shows now (RFC 6238, with its defaults)."""
    digest = hmac.new(base64.b32decode(secret), struct.pack(">Q", int(time.time() // 30)), hashlib.sha1).digest()
    at = digest[-1] & 15
    return f"{(int.from_bytes(digest[at : at + 4], 'big') & 0x7FFFFFFF) % 10**6:06d}"


@pytest.fixture
def alice(db: None, settings) -> User:  # type: ignore[no-untyped-def]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return factories.make_user("alice", password=PASSWORD)


def _password(client: Client | None = None, **extra: str):  # type: ignore[no-untyped-def]
    client = client or Client()
    return client, client.post("/sign-in/", {"username": "alice", "password": PASSWORD, **extra})


def _set_up() -> tuple[Client, str, list[str]]:
    """Return a browser that set it up, the app's secret and the codes for emergencies."""
    client, _ = _password()
    secret = client.get(APP).context["form"].secret
    answer = client.post(APP, {"code": totp(secret)})
    assert (answer.status_code, answer["Location"]) == (302, CODES)
    codes = client.get(CODES).context["unused_codes"]
    cache.clear()  # the code that set it up may be shown once more
    return client, secret, codes


def test_it_is_asked_for_and_leads_on(alice) -> None:
    _, secret, codes = _set_up()
    assert len(set(codes)) == 10
    client, answer = _password(next="/aup/")
    assert (answer["Location"], "_auth_user_id" in client.session) == ("/sign-in/second-factor/", False)
    assert client.get("/aup/").status_code == 302
    assert b"wrong, used already" in client.post("/sign-in/second-factor/", {"code": "000000"}).content
    answer = client.post("/sign-in/second-factor/", {"code": totp(secret)})
    assert (answer["Location"], client.session["_auth_user_id"]) == ("/aup/", str(alice.pk))


def test_a_code_is_good_once(alice) -> None:
    _, secret, codes = _set_up()
    for code in (totp(secret), codes[0]):
        answers = []
        for _ in range(2):
            client, _ = _password()
            answers.append(client.post("/sign-in/second-factor/", {"code": code}).status_code)
        assert answers == [302, 200], code
    assert Client().get("/sign-in/second-factor/").status_code == 302  # without the password there is nothing to ask


def test_tries_are_counted_for_the_person(alice, standing_clock) -> None:
    _, secret, _ = _set_up()
    answers = []
    for _ in range(6):  # each from another browser
        client, _ = _password()
        answers.append(client.post("/sign-in/second-factor/", {"code": "000000"}))
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert int(answers[-1]["Retry-After"]) > 0
    client, _ = _password()
    assert client.post("/sign-in/second-factor/", {"code": totp(secret)}).status_code == 429


def test_nothing_in_the_database_opens_it(alice) -> None:
    _, secret, codes = _set_up()
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in kept and not any(code in kept for code in codes)
    told = str(list(AuditEvent.objects.values_list("payload", flat=True)))
    assert secret not in told
    assert AuditEvent.objects.filter(verb="person.second_factor_set_up", object_label="alice").count() == 1


def test_codes_are_shown_saved_and_renewed(alice) -> None:
    client, _, codes = _set_up()
    saved = client.get("/account/second-factor/codes.txt")
    assert "attachment" in saved["Content-Disposition"]
    assert all(code in saved.content.decode() for code in codes)
    assert client.post("/account/second-factor/codes/new/")["Location"] == CODES
    assert not set(codes) & set(client.get(CODES).context["unused_codes"])


def test_what_weighs_asks_again_after_a_while(alice) -> None:
    client, _, _ = _set_up()
    with override_settings(ACCOUNT_REAUTHENTICATION_TIMEOUT=0):
        for path in (CODES, "/account/second-factor/app/remove/", "/account/second-factor/codes/new/"):
            assert client.get(path)["Location"].startswith("/sign-in/again/"), path
    again = f"/sign-in/again/?next={CODES}"
    assert b"not your password" in client.post(again, {"password": "wrong"}).content
    assert client.post(again, {"password": PASSWORD, "next": CODES})["Location"] == CODES


def test_it_can_be_removed_by_its_owner_and_by_staff(alice) -> None:
    client, _, _ = _set_up()
    assert client.post("/account/second-factor/app/remove/").status_code == 302
    assert not Authenticator.objects.exists()
    _set_up()
    assert principal_services.remove_second_factor(actor=SYSTEM_ACTOR, user=alice)
    assert _password()[1]["Location"] == "/"
    verbs = AuditEvent.objects.filter(verb="person.second_factor_remove")
    assert [row.actor_label for row in verbs.order_by("pk")] == ["alice", "gatehouse"]


def test_a_site_may_ask_it_of_its_offices(alice) -> None:
    with override_settings(SIGN_IN=choices(SECOND_FACTOR="staff")):
        assert _password()[0].get("/aup/").status_code == 200  # of others it does not
        User.objects.filter(pk=alice.pk).update(is_infosec=True)
        client, _ = _password()
        for path in ("/aup/", "/incidents/", "/metrics", "/live/events/"):
            assert client.get(path)["Location"] == APP, path
        with pytest.raises(Unauthenticated):
            viewers.of_session(client.session.session_key)
        secret = client.get(APP).context["form"].secret
        client.post(APP, {"code": totp(secret)})
        assert client.get("/aup/").status_code == 200
        viewers.of_session(client.session.session_key)
        answer = client.post("/account/second-factor/app/remove/")
        assert answer.status_code == 200 and Authenticator.objects.filter(type="totp").exists()


def test_a_held_page_is_reached_by_nobody_else(alice) -> None:
    assert Client().get(APP)["Location"] == f"/sign-in/?next={APP}"


def test_who_has_no_password_here_has_it_elsewhere(db) -> None:
    client = Client()
    client.force_login(factories.make_user("u0007"), backend="django.contrib.auth.backends.ModelBackend")
    answer = client.get("/account/second-factor/")
    assert answer.status_code == 403 and b"You sign in elsewhere" in answer.content

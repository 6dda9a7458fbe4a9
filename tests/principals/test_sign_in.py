"""People sign in with a login name and a password."""

import pytest
from django.core.cache import cache
from django.test import Client

from tests import factories

PASSWORD = "correct horse battery"


@pytest.fixture
def alice(db: None, settings) -> None:  # type: ignore[no-untyped-def]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    factories.make_user("alice", password=PASSWORD)


def _try(password: str, username: str = "alice", **extra: str):  # type: ignore[no-untyped-def]
    return Client().post("/sign-in/", {"username": username, "password": password, **extra})


def test_it_lets_in_and_goes_where_one_wanted(alice: None) -> None:
    response = _try(PASSWORD, next="/incidents/")
    assert (response.status_code, response["Location"]) == (302, "/incidents/")


def test_it_never_goes_off_host(alice: None) -> None:
    assert _try(PASSWORD, next="https://evil.example/")["Location"] == "/"


def test_a_wrong_password_keeps_what_was_typed(alice: None) -> None:
    response = _try("wrong")
    assert response.status_code == 200
    assert b'value="alice"' in response.content
    assert b"do not belong together" in response.content


def test_unknown_and_known_names_get_the_same_words(alice: None) -> None:
    words = b"do not belong together"
    assert words in _try("wrong", "nobody").content and words in _try("wrong").content


def test_the_eleventh_try_waits(alice: None, standing_clock: None) -> None:
    cache.clear()
    for _ in range(10):
        _try("wrong")
    response = _try(PASSWORD)
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0
    assert b"Too many tries" in response.content


@pytest.mark.parametrize("name", ["ALICE", " alice ", "ａlice", "aLicｅ"])
def test_one_name_has_its_tries_however_it_is_written(alice: None, standing_clock: None, name: str) -> None:
    cache.clear()
    for _ in range(10):
        _try("wrong")
    assert _try(PASSWORD, name).status_code == 429


def test_one_host_has_its_tries_from_all_of_its_addresses(alice: None, standing_clock: None) -> None:
    cache.clear()
    data = {"username": "alice", "password": "wrong"}
    answers = [Client(REMOTE_ADDR=f"2001:db8::{number:x}").post("/sign-in/", data) for number in range(1, 12)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429]
    assert Client(REMOTE_ADDR="2001:db8:0:1::1").post("/sign-in/", data).status_code == 200


def test_spraying_names_from_one_address_stops(alice: None, standing_clock: None, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("principals.views.TRIES_FROM_ADDRESS", 5)
    answers = [_try("wrong", f"name{number}").status_code for number in range(6)]
    assert answers == [200] * 5 + [429]


def test_signing_out_is_a_post(alice: None) -> None:
    client = Client()
    client.post("/sign-in/", {"username": "alice", "password": PASSWORD})
    assert client.get("/sign-out/").status_code == 405
    client.post("/sign-out/")
    assert "_auth_user_id" not in client.session


def test_a_form_without_its_token_is_refused_with_a_page(alice: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/sign-in/", {"username": "alice", "password": PASSWORD})
    assert response.status_code == 403
    assert b"too old" in response.content

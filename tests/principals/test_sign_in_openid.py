"""People sign in through an OpenID Connect provider, a real one on loopback; nobody becomes somebody else."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.http import HttpResponse
from django.test import Client, override_settings

from portal.core.models import AuditEvent
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.engine.claims import both_said, read_claims
from principals.models import SignInIdentity, User
from tests import factories
from tests.support.openid import Provider, running_provider

GROUPS = {"GROUPS_CLAIM": "groups", "GROUP_ROLES": "rc-staff=staff; cn=ciso,ou=groups,dc=x=infosec; users=none"}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


def _sign_in(provider: Provider, subject: str, client: Client | None = None, onward: str = "") -> HttpResponse:
    client = client or Client()
    started = client.get("/sign-in/with/oidc/", {"next": onward} if onward else {})
    assert started.status_code == 302
    back = urlsplit(provider.consent(started["Location"], subject))
    answer = client.get(f"{back.path}?{back.query}")
    answer.browser = client  # type: ignore[attr-defined]
    return answer


def _who(answer: HttpResponse) -> str | None:
    key = answer.browser.session.get("_auth_user_id")  # type: ignore[attr-defined]
    return User.objects.get(pk=key).username if key else None


def test_a_person_comes_in_by_login_name_and_goes_where_they_wanted(db, provider) -> None:
    factories.make_user("u0007")
    provider.tell("sub-7", preferred_username="u0007")
    with provider.set(LOGIN_CLAIM="preferred_username"):
        assert b"Go on with Northgate" in Client().get("/sign-in/").content
        answer = _sign_in(provider, "sub-7", onward="/aup/")
    assert (answer.status_code, answer["Location"], _who(answer)) == (302, "/aup/", "u0007")
    assert SignInIdentity.objects.get().subject == "sub-7"
    assert SocialAccount.objects.count() == 0  # allauth keeps nothing of what it was told
    assert AuditEvent.objects.filter(verb="person.tie_identity", object_label="u0007").count() == 1


def test_it_proves_the_code_and_asks_for_what_is_set(db, provider) -> None:
    with provider.set(OIDC_SCOPES="openid profile email groups"):
        query = parse_qs(urlsplit(Client().get("/sign-in/with/oidc/")["Location"]).query)
    assert query["code_challenge_method"] == ["S256"] and query["state"][0]
    assert set(query["scope"][0].split()) == {"openid", "profile", "email", "groups"}


@pytest.mark.parametrize(
    "asked",
    [
        {"auth_params": "redirect_uri=https://evil.example/&code_challenge=mine&code_challenge_method=plain"},
        {"auth_params": "acr_values=none&prompt=none&state=mine"},
        {"scope": "openid offline_access"},
        {"process": "connect", "action": "reauthenticate"},
    ],
)
def test_a_link_asks_the_provider_for_nothing_of_its_own(db, provider, asked) -> None:
    def told(**more: str) -> dict[str, list[str]]:
        found = Client().get("/sign-in/with/oidc/", more | {"next": "/aup/"})
        return parse_qs(urlsplit(found["Location"]).query)

    with provider.set():
        plain, from_link = told(), told(**asked)
    assert set(plain) == set(from_link)
    for name in set(plain) - {"state", "code_challenge"}:
        assert sorted(plain[name][0].split()) == sorted(from_link[name][0].split())
    assert {from_link["state"][0], from_link["code_challenge"][0]}.isdisjoint({"mine"})


def test_it_never_goes_off_host(db, provider) -> None:
    factories.make_user("u0007")
    provider.tell("sub-7", preferred_username="u0007")
    with provider.set(LOGIN_CLAIM="preferred_username"):
        assert _sign_in(provider, "sub-7", onward="https://evil.example/")["Location"] == "/"


def test_a_verified_address_ties_once_and_a_renamed_person_stays_one(db, provider) -> None:
    factories.make_user("u0007", email="Ada@example.org")
    provider.tell("sub-7", email="ada@example.org", email_verified=True)
    with provider.set():
        assert _who(_sign_in(provider, "sub-7")) == "u0007"
        provider.tell("sub-7", email="ada.new@example.org", email_verified=False)
        assert _who(_sign_in(provider, "sub-7")) == "u0007"


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "ada@example.org"},
        {"email": "ada@example.org", "email_verified": False},
        {"email": "ada@example.org", "email_verified": "true"},
        {"email": "ada@example.org", "email_verified": 1},
        {"preferred_username": "u0007"},
        {"preferred_username": "u0007", "email": "mallory@example.org", "email_verified": True},
        {"name": "u0007", "nickname": "u0007", "email": "", "email_verified": True},
    ],
)
def test_no_account_is_taken_by_what_is_not_proven(db, provider, claims) -> None:
    factories.make_user("u0007", email="ada@example.org", is_research_computing=True)
    provider.tell("mallory", **claims)
    with provider.set():
        answer = _sign_in(provider, "mallory")
    assert (answer.status_code, _who(answer)) == (403, None)
    assert b"nobody here is known by that account" in answer.content
    assert SignInIdentity.objects.count() == 0


def test_a_name_or_address_that_passed_on_does_not_open_the_old_account(db, provider) -> None:
    factories.make_user("u0007", email="ada@example.org")
    claims = {"preferred_username": "u0007", "email": "ada@example.org", "email_verified": True}
    provider.tell("ada", **claims)
    provider.tell("successor", **claims)
    with provider.set(LOGIN_CLAIM="preferred_username"):
        assert _who(_sign_in(provider, "ada")) == "u0007"
        answer = _sign_in(provider, "successor")
    assert (answer.status_code, _who(answer)) == (409, None)
    with provider.set():  # nor by the address
        assert _sign_in(provider, "successor").status_code == 409
        assert principal_services.forget_identities(actor=SYSTEM_ACTOR, user=User.objects.get()) == 1
        assert _who(_sign_in(provider, "successor")) == "u0007"  # staff said so


def test_who_was_tied_wrongly_is_signed_out_when_untied(db, provider) -> None:
    user = factories.make_user("u0007")
    provider.tell("intruder", preferred_username="u0007")
    with provider.set(LOGIN_CLAIM="preferred_username"):
        browser = _sign_in(provider, "intruder").browser  # type: ignore[attr-defined]
        assert browser.get("/aup/").status_code == 200
        principal_services.forget_identities(actor=SYSTEM_ACTOR, user=User.objects.get(pk=user.pk))
        assert browser.get("/aup/").status_code == 302


def test_another_login_name_with_a_known_address_is_refused(db, provider) -> None:
    factories.make_user("u0007", email="ada@example.org")
    provider.tell("sub-9", preferred_username="u0009", email="ada@example.org", email_verified=True)
    with provider.set(LOGIN_CLAIM="preferred_username", UNKNOWN_PEOPLE="add"):
        answer = _sign_in(provider, "sub-9")
    assert (answer.status_code, User.objects.count()) == (409, 1)


def test_an_address_of_two_opens_neither(db, provider) -> None:
    for name in ("u0007", "u0008"):
        factories.make_user(name, email="shared@example.org")
    provider.tell("sub-s", email="shared@example.org", email_verified=True)
    with provider.set():
        assert _sign_in(provider, "sub-s").status_code == 409


def test_unknown_people_are_added_without_rights_where_the_site_says_so(db, provider) -> None:
    provider.tell("sub-new", preferred_username="u0042", email="n@example.org", email_verified=True, groups=["users"])
    with provider.set(LOGIN_CLAIM="preferred_username", UNKNOWN_PEOPLE="add", **GROUPS):
        answer = _sign_in(provider, "sub-new")
        assert _who(answer) == "u0042"
        assert answer.browser.get("/overview/").status_code == 403  # type: ignore[attr-defined]
    user = User.objects.get(username="u0042")
    assert not (user.is_research_computing or user.is_infosec or user.is_auditor or user.memberships.exists())


def test_a_login_name_that_is_none_is_refused(db, provider) -> None:
    provider.tell("sub-odd", preferred_username="../root")
    with provider.set(LOGIN_CLAIM="preferred_username", UNKNOWN_PEOPLE="add"):
        assert (_sign_in(provider, "sub-odd").status_code, User.objects.count()) == (422, 0)


def test_somebody_who_is_switched_off_stays_out_and_falls_out(db, provider) -> None:
    user = factories.make_user("u0007")
    provider.tell("sub-7", preferred_username="u0007")
    with provider.set(LOGIN_CLAIM="preferred_username"):
        browser = _sign_in(provider, "sub-7").browser  # type: ignore[attr-defined]
        assert browser.get("/aup/").status_code == 200
        principal_services.set_person_active(actor=SYSTEM_ACTOR, user=user, active=False)
        assert browser.get("/aup/").status_code == 302
        answer = _sign_in(provider, "sub-7")
    assert (answer.status_code, _who(answer)) == (403, None)


def test_roles_follow_groups_at_each_sign_in(db, provider) -> None:
    user = factories.make_user("u0007", is_auditor=True)
    claims = {"preferred_username": "u0007"}
    with provider.set(LOGIN_CLAIM="preferred_username", **GROUPS):
        provider.tell("sub-7", groups=["rc-staff", "cn=ciso,ou=groups,dc=x", "chess"], **claims)
        _sign_in(provider, "sub-7")
        user.refresh_from_db()
        assert (user.is_research_computing, user.is_infosec, user.is_auditor) == (True, True, True)
        provider.tell("sub-7", groups=["rc-staff"], **claims)
        _sign_in(provider, "sub-7")
        user.refresh_from_db()
        assert (user.is_research_computing, user.is_infosec, user.is_auditor) == (True, False, True)
        provider.tell("sub-7", **claims)  # no groups are told any more
        _sign_in(provider, "sub-7")
    user.refresh_from_db()
    assert (user.is_research_computing, user.is_infosec, user.is_auditor) == (False, False, True)
    told = AuditEvent.objects.filter(verb="person.settle_roles", object_label="u0007").order_by("pk")
    assert [row.payload["after"]["roles"] for row in told] == [
        ["auditor", "infosec", "staff"], ["auditor", "staff"], ["auditor"],
    ]  # fmt: skip


def test_a_way_in_that_tells_no_groups_gives_none_of_their_roles(db, provider) -> None:
    """Else whoever left the group keeps its role by signing in with a password."""
    user = factories.make_user("u0007", password="correct horse battery", is_auditor=True)
    provider.tell("sub-7", preferred_username="u0007", groups=["rc-staff"])
    for gives in (GROUPS, {}):  # {}: the site lets groups give nothing any more
        with provider.set(LOGIN_CLAIM="preferred_username", **GROUPS):
            _sign_in(provider, "sub-7")
        with provider.set(LOGIN_CLAIM="preferred_username", **gives):
            Client().post("/sign-in/", {"username": "u0007", "password": "correct horse battery"})
        user.refresh_from_db()
        assert (user.is_research_computing, user.is_auditor, user.roles_from_groups) == (False, True, [])


@pytest.mark.parametrize("login", [" u0007", "u0007\xa0", "u0007\n"])
def test_a_login_name_is_read_as_it_is(db, provider, login) -> None:
    factories.make_user("u0007")
    provider.tell("sub-9", preferred_username=login)
    with provider.set(LOGIN_CLAIM="preferred_username"):
        answer = _sign_in(provider, "sub-9")
    assert (answer.status_code, _who(answer)) == (403, None)


@pytest.mark.parametrize(
    ("token", "userinfo", "email"),
    [
        ({"email": "m@example.org", "email_verified": True}, {"email": "ada@example.org"}, ""),
        ({"email_verified": True}, {"email": "ada@example.org"}, ""),
        ({"email": "ada@example.org", "email_verified": True}, {"email": "ada@example.org"}, "ada@example.org"),
        ({"email": "m@example.org"}, {"email": "ada@example.org", "email_verified": True}, "ada@example.org"),
        ({"email": "ada@example.org", "email_verified": True}, {}, "ada@example.org"),
        ({}, {"email": "ada@example.org", "email_verified": True}, "ada@example.org"),
    ],
)
def test_an_address_is_verified_by_who_tells_it(token, userinfo, email) -> None:
    said = both_said({"sub": "1", **token}, {"sub": "1", **userinfo} if userinfo else {})
    assert read_claims(said, issuer="https://id.example.org").email == email


@pytest.mark.parametrize("odd", ["u0007\0", "u0007\ud800", "u\r\n0007"])
def test_what_no_database_holds_is_no_name(odd) -> None:
    with pytest.raises(ValueError, match="no subject"):
        read_claims({"sub": odd}, issuer="https://id.example.org")
    said = {"sub": "7", "name": odd, "email": odd, "email_verified": True}
    claims = read_claims(said, issuer="https://id.example.org", login_claim="name")
    assert (claims.login, claims.email) == ("", "")


def test_a_role_given_by_hand_stays(db, provider) -> None:
    user = factories.make_user("u0007")
    claims = {"preferred_username": "u0007"}
    with provider.set(LOGIN_CLAIM="preferred_username", **GROUPS):
        provider.tell("sub-7", groups=["rc-staff"], **claims)
        _sign_in(provider, "sub-7")
        principal_services.add_person(actor=SYSTEM_ACTOR, login="u0007", roles={"is_research_computing": True})
        provider.tell("sub-7", groups=[], **claims)
        _sign_in(provider, "sub-7")
    user.refresh_from_db()
    assert user.is_research_computing and user.roles_from_groups == []


def test_a_foreign_state_signs_nobody_in(db, provider) -> None:
    factories.make_user("u0007")
    provider.tell("sub-7", preferred_username="u0007")
    with provider.set(LOGIN_CLAIM="preferred_username"):
        back = urlsplit(provider.consent(Client().get("/sign-in/with/oidc/")["Location"], "sub-7"))
        victim = Client()
        answer = victim.get(f"{back.path}?{back.query}")
    assert answer.status_code == 401 and "_auth_user_id" not in victim.session


def test_a_code_is_good_once(db, provider) -> None:
    factories.make_user("u0007")
    provider.tell("sub-7", preferred_username="u0007")
    with provider.set(LOGIN_CLAIM="preferred_username"):
        client = Client()
        back = urlsplit(provider.consent(client.get("/sign-in/with/oidc/")["Location"], "sub-7"))
        assert client.get(f"{back.path}?{back.query}").status_code == 302
        client.post("/sign-out/")
        assert client.get(f"{back.path}?{back.query}").status_code == 401


def test_whoever_turns_back_there_is_at_the_sign_in_page(db, provider) -> None:
    with provider.set():
        client = Client()
        start = client.get("/sign-in/with/oidc/")["Location"]
        back = provider.consent(start, "")
        assert "error=access_denied" in back
        # RFC 6749 §4.1.2.1 asks for the state; this provider leaves it out.
        state = parse_qs(urlsplit(start).query)["state"][0]
        answer = client.get("/sign-in/with/oidc/callback/", {"error": "access_denied", "state": state})
    assert (answer.status_code, answer["Location"]) == (302, "/sign-in/")


def test_another_issuer_than_the_one_set_is_refused(db, provider) -> None:
    factories.make_user("u0007")
    provider.tell("sub-7", preferred_username="u0007")
    with provider.set(LOGIN_CLAIM="preferred_username") as found:
        elsewhere = replace(found, oidc_issuer=f"{provider.issuer}/realms/other")
        with override_settings(SIGN_IN=elsewhere):
            answer = _sign_in(provider, "sub-7")
    assert (answer.status_code, _who(answer)) == (403, None)
    assert b"another issuer" in answer.content


def test_a_provider_that_is_down_says_so(db, provider) -> None:
    with Provider(9).set():  # nobody listens there
        answer = Client().get("/sign-in/with/oidc/")
    assert answer.status_code == 401
    assert b"did not vouch" in answer.content


def test_starting_it_is_bounded(db, provider, standing_clock, monkeypatch) -> None:
    monkeypatch.setattr("principals.views.TRIES_FROM_ADDRESS", 2)
    with provider.set():
        answers = [Client().get("/sign-in/with/oidc/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [302, 302, 429]
    assert int(answers[-1]["Retry-After"]) > 0


def test_no_password_opens_where_none_is_to(db, provider) -> None:
    factories.make_user("u0007", password="correct horse battery")
    with provider.set(LOCAL_SIGN_IN="0"):
        assert b"password" not in Client().get("/sign-in/").content
        answer = Client().post("/sign-in/", {"username": "u0007", "password": "correct horse battery"})
    assert answer.status_code == 403

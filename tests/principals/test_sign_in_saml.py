"""People sign in through SAML; what is not signed, not for us, not now, or not the first time lets nobody in."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client
from lxml import etree

from portal.core import clock
from portal.core.models import AuditEvent
from principals.models import SignInIdentity, User
from principals.saml import NoProof, read_answer
from tests import factories
from tests.support import saml
from tests.support import saml_provider as idp
from tests.support.saml import ACS, UID, Keys, Twist

KEYS, FOREIGN = Keys.made(), Keys.made()
ADA = Twist(attributes={UID: ["u0007"]})


@pytest.fixture
def portal(db: None, tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "idp.xml"
    file.write_text(saml.metadata(KEYS))
    factories.make_user("u0007", email="ada@example.org")
    with saml.portal_with(file, SAML_GROUPS="groups", GROUP_ROLES="rc-staff=staff; users=none"):
        yield file


def _begin(onward: str = "") -> tuple[Client, str]:
    client = Client()
    started = client.get("/sign-in/saml/", {"next": onward} if onward else {})
    assert started["Location"].startswith(saml.SSO), started.content
    return client, saml.request_id(started["Location"])


def _send(client: Client, text: str, **more: str) -> HttpResponse:
    """Post it as the provider's page does, without the session's cookie, then go where that leads with it."""
    posted = Client().post("/sign-in/saml/acs/", {"SAMLResponse": saml.packed(text), **more})
    if posted.status_code != 302:
        return posted
    assert posted["Location"] == "/sign-in/saml/finish/"
    client.cookies["gatehouse_saml"] = posted.cookies["gatehouse_saml"].value
    return client.get(posted["Location"])


def _who(client: Client) -> str | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None


def _come(twist: Twist, *, onward: str = "", keys: Keys | None = KEYS, **more: str) -> tuple[HttpResponse, str | None]:
    client, asked = _begin(onward)
    answer = _send(client, saml.answer_xml(asked, twist, keys), **more)
    return answer, _who(client)


def test_a_person_comes_in_and_goes_where_they_wanted(portal) -> None:
    assert b"Go on with Northgate" in Client().get("/sign-in/").content
    answer, who = _come(ADA, onward="/aup/", RelayState="https://evil.example/")
    assert (answer.status_code, answer["Location"], who) == (302, "/aup/", "u0007")
    identity = SignInIdentity.objects.get()
    assert (identity.issuer, identity.subject) == (f"saml:{saml.IDP}", "ada-at-idp")
    assert AuditEvent.objects.filter(verb="person.tie_identity", object_label="u0007").count() == 1
    assert _come(replace(ADA, attributes={UID: ["renamed"]}))[1] == "u0007"  # the name may change afterwards


@pytest.mark.parametrize("onward", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_it_never_goes_off_host(portal, onward) -> None:
    assert _come(ADA, onward=onward)[0]["Location"] == "/"


def test_roles_follow_groups(portal) -> None:
    _come(replace(ADA, attributes={UID: ["u0007"], "groups": ["users", "rc-staff"]}))
    assert User.objects.get().is_research_computing
    _come(replace(ADA, attributes={UID: ["u0007"], "groups": ["users"]}))
    assert not User.objects.get().is_research_computing


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"audience": "https://other.example.org/"}, id="for another"),
        pytest.param({"audience": None}, id="for anybody"),
        pytest.param({"recipient": "https://other.example.org/acs/"}, id="sent to another"),
        pytest.param({"recipient": f"https://evil.example/?{ACS}"}, id="sent to another by a like name"),
        pytest.param({"destination": "https://other.example.org/"}, id="addressed to another"),
        pytest.param({"starts_s": -900, "ends_s": -400}, id="over"),
        pytest.param({"starts_s": 900, "ends_s": 1000}, id="not yet"),
        pytest.param({"issuer": "https://other.example.org/saml"}, id="of another provider"),
        pytest.param({"confirmation": 'Method="urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"'}, id="no bearer"),
        pytest.param({"envelope": "_another"}, id="to another request"),
        pytest.param({"algorithm": "RSA_SHA1"}, id="by SHA-1"),
    ],
)
def test_what_is_not_for_us_and_now_lets_nobody_in(portal, change) -> None:
    answer, who = _come(replace(ADA, **change))
    assert (answer.status_code, who) == (401, None)
    assert not SignInIdentity.objects.exists()


@pytest.mark.parametrize("keys", [None, FOREIGN], ids=["unsigned", "another key"])
def test_what_the_provider_did_not_sign_lets_nobody_in(portal, keys) -> None:
    answer, who = _come(ADA, keys=keys)
    assert (answer.status_code, who) == (401, None)


def _altered(text: str) -> str:
    return text.replace(">u0007<", ">root7<")


def _comment(text: str) -> str:
    """A comment in the name: signatures do not see it, and a careless reader stops there."""
    return text.replace("ada-at-idp", "ada<!-- -->-at-idp")


def _wrapped(text: str, how: str) -> str:
    """Put an assertion of one's own where it may be read, and the signed one where it may be verified."""
    root = etree.fromstring(text)
    signed = root[-1]
    own = etree.fromstring(etree.tostring(signed).replace(b">u0007<", b">root7<"))
    signature = own.find("{http://www.w3.org/2000/09/xmldsig#}Signature")
    assert signature is not None
    if how == "within":
        own.set("ID", "_own")
        own.remove(signature)
        root.replace(signed, own)
        own.append(signed)
    elif how == "object":
        root.replace(signed, own)
        held = etree.SubElement(signature, "{http://www.w3.org/2000/09/xmldsig#}Object")
        held.append(signed)
    elif how == "extensions":
        extensions = etree.Element("{urn:oasis:names:tc:SAML:2.0:protocol}Extensions")
        extensions.append(signed)
        root.insert(1, extensions)
        own.set("ID", "_own")
        root.append(own)
    else:
        own.set("ID", "_own")
        own.remove(signature)
        root.insert(len(root) - 1 if how == "before" else len(root), own)
    return etree.tostring(root).decode()


@pytest.mark.parametrize("how", ["within", "object", "extensions", "before", "after"])
def test_a_wrapped_signature_lets_nobody_in(portal, how) -> None:
    factories.make_user("root7", is_research_computing=True)
    client, asked = _begin()
    answer = _send(client, _wrapped(saml.answer_xml(asked, ADA, KEYS), how))
    assert (answer.status_code, _who(client)) == (401, None)


def test_what_was_altered_lets_nobody_in_and_a_comment_makes_no_other_name(portal) -> None:
    factories.make_user("root7", is_research_computing=True)
    client, asked = _begin()
    assert _send(client, _altered(saml.answer_xml(asked, ADA, KEYS))).status_code == 401
    _send(client, _comment(saml.answer_xml(asked, ADA, KEYS)))
    assert not SignInIdentity.objects.exclude(subject="ada-at-idp").exists()


SUBJECT_ID = "urn:oasis:names:tc:SAML:attribute:subject-id"


@pytest.mark.parametrize("name", [SUBJECT_ID, "groups", "another"])
def test_attributes_beside_the_assertion_count_for_nothing(portal, name) -> None:
    """The schema lets anything stand in Extensions, and no signature of an assertion covers them."""
    boss = factories.make_user("boss", is_research_computing=True)
    SignInIdentity.objects.create(user=boss, issuer=f"saml:{saml.IDP}", subject="rc-staff")
    client, asked = _begin()
    own = (
        f'<samlp:Extensions><saml:AttributeStatement><saml:Attribute Name="{name}"><saml:AttributeValue>rc-staff'
        "</saml:AttributeValue></saml:Attribute></saml:AttributeStatement></samlp:Extensions><samlp:Status>"
    )
    _send(client, saml.answer_xml(asked, ADA, KEYS).replace("<samlp:Status>", own))
    assert (_who(client), User.objects.get(username="u0007").is_research_computing) == ("u0007", False)


_REFERENCE = '<Reference URI="file:///dev/zero"/>'
_XSLT = '<Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>'


@pytest.mark.parametrize(
    ("before", "more", "kind"),
    [
        pytest.param("</SignedInfo>", _REFERENCE, "references", id="a file"),
        pytest.param("</Signature>", f"<Object><Manifest>{_REFERENCE}</Manifest></Object>", "references", id="listed"),
        pytest.param("</Transforms>", _XSLT, "transforms", id="a program"),
    ],
)
def test_a_signature_that_nobody_made_reads_no_file_and_runs_nothing(portal, before, more, kind) -> None:
    """What a signature refers to is read before the signature is: an endless file would be read for ever."""
    text = saml.answer_xml("_asked", ADA, KEYS)
    assert text.count(before) == 1
    with pytest.raises(NoProof, match=f"^{kind}$"):
        read_answer(saml.packed(text.replace(before, more + before)))


def test_an_answer_is_good_once_and_for_the_browser_that_asked(portal) -> None:
    client, asked = _begin()
    text = saml.answer_xml(asked, ADA, KEYS)
    assert _send(client, text).status_code == 302
    client.post("/sign-out/")
    assert (_send(client, text).status_code, _who(client)) == (401, None)
    cache.clear()  # the portal may be started anew: the request was answered once all the same
    assert (_send(client, text).status_code, _who(client)) == (401, None)
    _, asked = _begin()
    victim, _ = _begin()
    assert (_send(victim, saml.answer_xml(asked, ADA, KEYS)).status_code, _who(victim)) == (401, None)
    assert Client().get("/sign-in/saml/finish/").status_code == 401


def test_the_signed_half_says_to_which_request_it_is(portal) -> None:
    assert _come(replace(ADA, envelope=""))[1] == "u0007"
    _, foreign = _begin()
    client, _ = _begin()
    answer = _send(client, saml.answer_xml(foreign, replace(ADA, envelope=""), KEYS))
    assert (answer.status_code, _who(client)) == (401, None)


def test_an_envelope_does_not_make_an_assertion_an_answer(portal) -> None:
    """One that was made for nobody's request, put into an envelope that names the thief's."""
    client, asked = _begin()
    answer = _send(client, saml.answer_xml("", replace(ADA, envelope=asked), KEYS))
    assert (answer.status_code, _who(client)) == (401, None)


def test_nobody_comes_unasked_unless_the_site_says_so(portal) -> None:
    client = Client()
    assert (_send(client, saml.answer_xml("", ADA, KEYS)).status_code, _who(client)) == (401, None)
    with saml.portal_with(portal, SAML_UNASKED="1"):
        text = saml.answer_xml("", ADA, KEYS)
        assert _send(client, text, RelayState="https://evil.example/")["Location"] == "/"
        assert _who(client) == "u0007"
        thief = Client()
        assert (_send(thief, text).status_code, _who(thief)) == (401, None)
        assert _send(client, saml.answer_xml("", ADA, KEYS), RelayState="/aup/")["Location"] == "/aup/"


@pytest.mark.parametrize(
    "prolog",
    [
        pytest.param('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>', id="of a file"),
        pytest.param('<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>', id="that grow"),
        pytest.param('<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd">', id="of another host"),
    ],
)
def test_entities_are_refused(portal, prolog) -> None:
    client, asked = _begin()
    assert _send(client, prolog + saml.answer_xml(asked, ADA, KEYS)).status_code == 401
    portal.write_text(saml.metadata(KEYS, prolog=prolog))
    assert Client().get("/sign-in/saml/").status_code == 401


@pytest.mark.parametrize("place", ["itself", "all", "some"])
def test_metadata_end_while_the_portal_runs(portal, place) -> None:
    """Also by the end of a group that the provider stands in, and never because they were good at the start."""
    end = f'validUntil="{clock.now() + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"'
    group = '<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" {0}>{1}</md:EntitiesDescriptor>'
    own = saml.metadata(KEYS, more=end if place == "itself" else "")
    inner = group.format(end if place == "some" else "", own)
    portal.write_text(group.format(end if place == "all" else "", inner))
    assert Client().get("/sign-in/saml/").status_code == 302
    with clock.at(clock.now() + timedelta(hours=2)):
        assert Client().get("/sign-in/saml/").status_code == 401


@pytest.mark.parametrize("odd", ["", "\0", "%%%", "PHg+", "A" * 300_000, "PHNhbWxwOlJlc3BvbnNlLz4="], ids=range(6))
def test_what_is_no_answer_is_refused(portal, odd) -> None:
    assert Client().post("/sign-in/saml/acs/", {"SAMLResponse": odd}).status_code == 401


@pytest.mark.parametrize("length", ["", "abc", "600000"])
def test_what_does_not_say_its_size_is_not_read(portal, length) -> None:
    assert Client().post("/sign-in/saml/acs/", {"SAMLResponse": "x"}, CONTENT_LENGTH=length).status_code == 401


def test_no_account_is_taken_by_an_address_or_a_name_that_passed_on(portal) -> None:
    mail = "urn:oid:0.9.2342.19200300.100.1.3"
    for told in ({mail: ["ada@example.org"], "x": ["y"]}, {UID: ["u0007", "u0008"]}, {UID: [" u0007"]}):
        assert _come(Twist(subject="mallory", attributes=told))[0].status_code == 403
    assert _come(ADA)[1] == "u0007"
    answer, who = _come(replace(ADA, subject="successor"))
    assert (answer.status_code, who) == (409, None)


@pytest.mark.parametrize("kind", ["transient", "emailAddress"])
def test_a_name_that_does_not_stay_is_no_subject(portal, kind) -> None:
    answer, who = _come(replace(ADA, subject_format=f"urn:oasis:names:tc:SAML:2.0:nameid-format:{kind}"))
    assert (answer.status_code, who) == (403, None) and b"GATEHOUSE_SAML_SUBJECT" in answer.content
    with saml.portal_with(portal, SAML_SUBJECT="objectid"):
        told = {UID: ["u0007"], "objectid": ["7f3a"]}
        assert _come(replace(ADA, subject_format="", attributes=told))[1] == "u0007"
    assert SignInIdentity.objects.get().subject == "7f3a"


def test_it_tells_the_provider_who_it_is_whatever_host_is_asked(portal) -> None:
    answer = Client(headers={"host": "localhost"}).get("/sign-in/saml/metadata/")
    root: Any = etree.fromstring(answer.content)
    acs = root.find(".//{*}AssertionConsumerService")
    assert (root.get("entityID"), acs.get("Location")) == (saml.SP, ACS)
    assert root.find("{*}SPSSODescriptor").get("WantAssertionsSigned") == "true"
    assert "RelayState" not in parse_qs(urlsplit(Client().get("/sign-in/saml/")["Location"]).query)


@pytest.mark.skipif(shutil.which("xmlsec1") is None, reason="needs xmlsec1, by which pysaml2 signs")
def test_a_provider_made_by_others_signs_people_in(portal, tmp_path) -> None:
    """pysaml2's: it reads our metadata and our request, and tells its own metadata."""
    with idp.running(KEYS, Client().get("/sign-in/saml/metadata/").content.decode(), tmp_path) as provider:
        portal.write_text(provider.metadata)
        client = Client()
        with saml.portal_with(portal, SAML_GROUPS=saml.MEMBER_OF, GROUP_ROLES="rc-staff=staff"):
            started = client.get("/sign-in/saml/", {"next": "/aup/"})
            text = provider.answer(started["Location"], "ada", {"uid": ["u0007"], "isMemberOf": ["rc-staff", "all"]})
            answer = _send(client, text)
    assert (answer.status_code, answer["Location"], _who(client)) == (302, "/aup/", "u0007")
    assert User.objects.get().is_research_computing

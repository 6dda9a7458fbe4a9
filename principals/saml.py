"""Sign-in by SAML 2.0: what a provider's answer must hold before it is believed. Statements are python3-saml's to read.

Beyond what python3-saml asks: who is meant (audience, recipient) must be told at all; attributes and the request that
an answer is to count as the signed assertion tells them, never as the unsigned envelope does; a signature covers what
it stands in and nothing else, by the two transforms of SAML; an assertion is good once.
"""

import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from portal.core.errors import NotAllowed
from portal.core.saml import ACS_PATH, METADATA_PATH, PERSISTENT, UNSPECIFIED, Saml
from principals.engine.claims import Claims, read_claims
from principals.saml_metadata import provider_of

log = structlog.get_logger(__name__)

MAX_ANSWER_CHARS = 256_000
SUBJECTS = (  # OASIS SAML V2.0 Subject Identifier Attributes: never given to anybody else
    "urn:oasis:names:tc:SAML:attribute:subject-id",
    "urn:oasis:names:tc:SAML:attribute:pairwise-id",
)
_SKEW_S = 600
_NS = {"saml": "urn:oasis:names:tc:SAML:2.0:assertion", "ds": "http://www.w3.org/2000/09/xmldsig#"}
_TRANSFORMS = frozenset({  # SAML core 2.0, 5.4.4; others let whoever sends it read files here, or compute for ever
    "http://www.w3.org/2000/09/xmldsig#enveloped-signature",
    "http://www.w3.org/2001/10/xml-exc-c14n#",
    "http://www.w3.org/2001/10/xml-exc-c14n#WithComments",
})  # fmt: skip


class NoProof(ValueError):
    """An answer that proves nothing; its text is the kind, for the log."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider said under its signature. `in_response_to` is empty where nobody had asked."""

    claims: Claims
    in_response_to: str


def ask() -> tuple[str, str]:
    """Return where to send somebody, and the id of the request. Errors: `ValueError`, `OSError`."""
    from onelogin.saml2.auth import OneLogin_Saml2_Auth

    auth = OneLogin_Saml2_Auth(_request_data(), _config())
    return auth.login(return_to=""), auth.get_last_request_id()


def own_metadata() -> bytes:
    """Return what the provider is to know of this portal."""
    from onelogin.saml2.settings import OneLogin_Saml2_Settings

    metadata: bytes | str = OneLogin_Saml2_Settings(_config(), sp_validation_only=True).get_sp_metadata()
    return metadata.encode() if isinstance(metadata, str) else metadata


def read_answer(text: str) -> Answer:
    """Read an answer, once. Errors: `NoProof`; `NotAllowed` for one that is proven and tells too little."""
    import xmlsec
    from lxml.etree import LxmlError
    from onelogin.saml2.errors import OneLogin_Saml2_Error, OneLogin_Saml2_ValidationError
    from onelogin.saml2.response import OneLogin_Saml2_Response
    from onelogin.saml2.settings import OneLogin_Saml2_Settings

    if not 0 < len(text) <= MAX_ANSWER_CHARS:
        raise NoProof("size")
    config = _config()
    try:
        response = OneLogin_Saml2_Response(OneLogin_Saml2_Settings(config), text)
        _require_plain_signatures(response.document)
        response.is_valid(_request_data(), raise_exceptions=True)
        assertion = _assertion(response)
        asked = _asked(response, assertion, config)
        nameid, attributes = response.get_nameid_data(), _attributes(assertion)
        once = (response.get_assertion_id(), response.valid_scd_not_on_or_after)
    except (OneLogin_Saml2_ValidationError, OneLogin_Saml2_Error) as error:
        raise NoProof(_kind(error)) from error
    except NoProof:
        raise
    # Whatever else the libraries stumble over is no proof either.
    except (LxmlError, xmlsec.Error, ValueError, TypeError, AttributeError, LookupError) as error:
        raise NoProof(type(error).__name__) from error
    _take_once(*once)
    issuer = config["idp"]["entityId"]
    return Answer(_claims(issuer, nameid, attributes, settings.SIGN_IN.saml), asked)


def _require_plain_signatures(document: Any) -> None:
    """Refuse signatures that refer to more than one element of this document, or transform it in ways of their own.

    What is referred to is fetched and transformed before it is known whether the provider signed anything.
    """
    for signature in document.iterfind(".//ds:Signature", _NS):
        references = signature.findall(".//ds:Reference", _NS)
        if len(references) != 1 or not (references[0].get("URI") or "").startswith("#"):
            raise NoProof("references")
    transforms = document.iterfind(".//ds:Transform", _NS)
    if any(transform.get("Algorithm") not in _TRANSFORMS for transform in transforms):
        raise NoProof("transforms")


def _assertion(response: Any) -> Any:
    """Return the one assertion of the document, at any depth; that it is signed was made sure of before."""
    assertions = response.document.findall(".//saml:Assertion", _NS)
    if len(assertions) != 1:
        raise NoProof("assertions")
    return assertions[0]


def _asked(response: Any, assertion: Any, config: dict[str, Any]) -> str:
    """Return the request's id as the signed assertion tells it, once it is clear that the assertion is for us."""
    confirmations = assertion.findall(".//saml:SubjectConfirmationData", _NS)
    if len(confirmations) != 1:
        raise NoProof("confirmations")
    if config["sp"]["entityId"] not in response.get_audiences():
        raise NoProof("audience")
    if confirmations[0].get("Recipient") != config["sp"]["assertionConsumerService"]["url"]:
        raise NoProof("recipient")
    if response.valid_scd_not_on_or_after is None:
        raise NoProof("endless")
    asked, envelope = confirmations[0].get("InResponseTo") or "", response.get_in_response_to() or ""
    if asked != envelope and envelope:
        raise NoProof("in_response_to")
    return str(asked)


def _attributes(assertion: Any) -> dict[str, list[str]]:
    """Return the assertion's own attributes by name, never what stands around it, which nobody signed.

    Values are as they are: python3-saml strips, and ` ada` may be somebody else.
    """
    found: dict[str, list[str]] = {}
    for attribute in assertion.findall("saml:AttributeStatement/saml:Attribute", _NS):
        values = [str(value.xpath("string()")) for value in attribute.findall("saml:AttributeValue", _NS)]
        found.setdefault(attribute.get("Name", ""), []).extend(values)
    return found


def _take_once(assertion: str, until: float) -> None:
    key = f"saml-assertion:{hashlib.sha256(assertion.encode()).hexdigest()}"
    if not cache.add(key, 1, max(0, int(until - timezone.now().timestamp())) + _SKEW_S):
        raise NoProof("replayed")


def _claims(issuer: str, nameid: dict[str, Any], attributes: dict[str, list[str]], choices: Saml) -> Claims:
    """Read whom the answer is about. An address proves nothing in SAML, so none is read."""
    names = (choices.subject,) if choices.subject else SUBJECTS
    subject = next((value for name in names if (value := _one(attributes, name))), "")
    if not subject and not choices.subject and nameid.get("Format") == PERSISTENT:
        subject = str(nameid.get("Value") or "")
    if not subject:
        raise NotAllowed(
            "The provider tells no name of yours that stays yours.", code="subject_missing",
            remedy="Staff: let it send a persistent NameID or subject-id, or name an attribute that never passes to "
            "another person with GATEHOUSE_SAML_SUBJECT.",
        )  # fmt: skip
    said = {"sub": subject, "login": _one(attributes, choices.login), "groups": attributes.get(choices.groups, [])}
    try:
        # Its own kind of issuer: one server may speak both protocols under one name, with other subjects in each.
        return read_claims(said, issuer=f"saml:{issuer}", login_claim="login", groups_claim="groups")
    except ValueError as error:
        raise NotAllowed(str(error), code="subject_missing", remedy="Tell the facility’s staff.") from error


def _one(attributes: dict[str, list[str]], name: str) -> str:
    """Return the value of an attribute that has one; of two it would be anybody's guess."""
    values = attributes.get(name) or []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else ""


def _kind(error: Any) -> str:
    """Return the name of python3-saml's code: its words repeat what came from outside."""
    named = {value: name for name, value in vars(type(error)).items() if name.isupper() and isinstance(value, int)}
    return str(named.get(error.code, type(error).__name__)).lower()


def _request_data() -> dict[str, Any]:
    """Describe the request as the address that is set says it, never as the Host header does."""
    parts = urlsplit(settings.BASE_URL)
    return {
        "https": "on" if parts.scheme == "https" else "off",
        "http_host": parts.netloc,
        "script_name": f"{parts.path}{ACS_PATH}",
        "get_data": {},
        "post_data": {},
    }


def _config() -> dict[str, Any]:
    choices: Saml = settings.SIGN_IN.saml
    return {
        "strict": True,
        "debug": False,
        "sp": {
            "entityId": choices.entity_id or f"{settings.BASE_URL}{METADATA_PATH}",
            "assertionConsumerService": {
                "url": f"{settings.BASE_URL}{ACS_PATH}",
                "binding": "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST",
            },
            "NameIDFormat": UNSPECIFIED if choices.subject else PERSISTENT,
        },
        "idp": dict(provider_of(choices)),
        "security": {
            "wantAssertionsSigned": True,
            "wantAttributeStatement": True,
            "wantNameId": False,
            "rejectDeprecatedAlgorithm": True,
            "requestedAuthnContext": False,
            "allowRepeatAttributeName": True,  # groups often come one by one
            "allowSingleLabelDomains": True,  # addresses inside a site
        },
    }

"""A SAML provider for tests: its keys and metadata, and answers signed by it, right or wrong in one point each."""

import base64
import datetime as dt
import secrets
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from django.test import override_settings
from lxml import etree

from portal.core import saml
from tests.support.openid import choices

PORTAL = "http://testserver"
ACS, SP = f"{PORTAL}/sign-in/saml/acs/", f"{PORTAL}/sign-in/saml/metadata/"
IDP = "https://idp.example.org/saml"
SSO = "https://idp.example.org/sso"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
UID = "urn:oid:0.9.2342.19200300.100.1.1"
MEMBER_OF = "urn:oid:1.3.6.1.4.1.5923.1.5.1.1"
_NS = 'xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"'


@dataclass
class Keys:
    """A key and its certificate."""

    key: bytes
    certificate: bytes

    @classmethod
    def made(cls) -> "Keys":
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp")])
        start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
        built = x509.CertificateBuilder(name, name, key.public_key(), 7, start, start + dt.timedelta(days=36500))
        pem = serialization.Encoding.PEM
        return cls(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
            built.sign(key, hashes.SHA256()).public_bytes(pem),
        )

    @property
    def in_metadata(self) -> str:
        return "".join(self.certificate.decode().split("\n")[1:-2])


@dataclass
class Twist:
    """What an answer says; each default is what a right one has."""

    subject: str = "ada-at-idp"
    subject_format: str = PERSISTENT
    attributes: Mapping[str, list[str]] = field(default_factory=dict)
    issuer: str = IDP
    audience: str | None = SP
    recipient: str = ACS
    destination: str = ACS
    starts_s: int = -5
    ends_s: int = 120
    confirmation: str = 'Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"'
    envelope: str | None = None  # the request's id outside of what is signed
    algorithm: str = "RSA_SHA256"


def metadata(keys: Keys, *, more: str = "", prolog: str = "", entity: str = IDP) -> str:
    """Metadata as a provider publishes them."""
    return (
        f'{prolog}<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="{entity}" {more}>'
        '<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">'
        '<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data>'
        f"<ds:X509Certificate>{keys.in_metadata}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
        '<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" '
        f'Location="{SSO}"/></md:IDPSSODescriptor></md:EntityDescriptor>'
    )


def request_id(address: str) -> str:
    """The id of the request that an address carries to the provider."""
    packed = base64.b64decode(parse_qs(urlsplit(address).query)["SAMLRequest"][0])
    return str(etree.fromstring(zlib.decompress(packed, -15)).get("ID"))


def answer_xml(asked: str, twist: Twist, keys: Keys | None) -> str:
    """An answer to the request `asked` (empty: to none), its assertion signed by `keys`."""
    now = dt.datetime.now(dt.UTC)
    start, end = (f"{now + dt.timedelta(seconds=s):%Y-%m-%dT%H:%M:%SZ}" for s in (twist.starts_s, twist.ends_s))
    irt = f'InResponseTo="{asked}"' if asked else ""
    envelope = asked if twist.envelope is None else twist.envelope
    told = f'InResponseTo="{envelope}"' if envelope else ""
    for_whom = (
        f"<saml:AudienceRestriction><saml:Audience>{twist.audience}</saml:Audience></saml:AudienceRestriction>"
        if twist.audience is not None
        else ""
    )
    statements = "".join(
        f'<saml:Attribute Name="{name}">'
        + "".join(f"<saml:AttributeValue>{value}</saml:AttributeValue>" for value in values)
        + "</saml:Attribute>"
        for name, values in twist.attributes.items()
    )
    assertion_id, response_id = (f"_{secrets.token_hex(16)}" for _ in range(2))
    text = (
        f'<samlp:Response {_NS} ID="{response_id}" Version="2.0" IssueInstant="{start}" '
        f'Destination="{twist.destination}" {told}>'
        f"<saml:Issuer>{twist.issuer}</saml:Issuer>"
        '<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>'
        f'<saml:Assertion ID="{assertion_id}" Version="2.0" IssueInstant="{start}">'
        f"<saml:Issuer>{twist.issuer}</saml:Issuer>"
        f'<saml:Subject><saml:NameID Format="{twist.subject_format}">{twist.subject}</saml:NameID>'
        f'<saml:SubjectConfirmation {twist.confirmation}><saml:SubjectConfirmationData Recipient="{twist.recipient}" '
        f'NotOnOrAfter="{end}" {irt}/></saml:SubjectConfirmation></saml:Subject>'
        f'<saml:Conditions NotBefore="{start}" NotOnOrAfter="{end}">{for_whom}</saml:Conditions>'
        f'<saml:AuthnStatement AuthnInstant="{start}"><saml:AuthnContext><saml:AuthnContextClassRef>'
        "urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext>"
        f"</saml:AuthnStatement><saml:AttributeStatement>{statements}</saml:AttributeStatement>"
        "</saml:Assertion></samlp:Response>"
    )
    root = etree.fromstring(text)
    if keys is not None:
        sign(root[-1], keys, twist.algorithm)
    return etree.tostring(root).decode()


def sign(element: etree._Element, keys: Keys, algorithm: str = "RSA_SHA256") -> None:
    """Put an enveloped signature where the schema wants it."""
    algorithms = {"RSA_SHA256": xmlsec.constants.TransformRsaSha256, "RSA_SHA1": xmlsec.constants.TransformRsaSha1}
    node = xmlsec.template.create(element, xmlsec.constants.TransformExclC14N, algorithms[algorithm])
    element.insert(1, node)
    reference = xmlsec.template.add_reference(node, xmlsec.constants.TransformSha256, uri=f"#{element.get('ID')}")
    xmlsec.template.add_transform(reference, xmlsec.constants.TransformEnveloped)
    xmlsec.template.add_transform(reference, xmlsec.constants.TransformExclC14N)
    xmlsec.tree.add_ids(element, ["ID"])
    context = xmlsec.SignatureContext()
    context.key = xmlsec.Key.from_memory(keys.key, xmlsec.constants.KeyDataFormatPem)
    context.sign(node)


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def portal_with(file: Path, **values: str) -> Iterator[None]:
    """Serve the portal's settings with the provider of these metadata in them."""
    found = choices(SAML_METADATA=str(file), SAML_LOGIN=UID, SAML_NAME="Northgate", **values)
    providers = {"openid_connect": {"APPS": []}, "saml": saml.app(found.saml)}
    assert found.faults == ()
    with override_settings(SIGN_IN=found, SOCIALACCOUNT_PROVIDERS=providers, BASE_URL=PORTAL):
        yield

"""pysaml2 as the provider: another project's reading of SAML, which signs with xmlsec1."""

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.saml import IDP, SP, SSO, Keys

REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"


@dataclass
class Provider:
    """One that knows this portal."""

    server: Any
    metadata: str

    def answer(self, address: str, who: str, attributes: dict[str, list[str]]) -> str:
        """Read the request that an address carries, and say who it is."""
        from saml2.saml import NameID

        assert address.startswith(SSO)
        request = self.server.parse_authn_request(parse_qs(urlsplit(address).query)["SAMLRequest"][0], REDIRECT)
        to = self.server.response_args(request.message)
        text = self.server.create_authn_response(
            attributes, to["in_response_to"], to["destination"], to["sp_entity_id"], userid=who,
            name_id=NameID(format=PERSISTENT, text=f"{who}-persistent", sp_name_qualifier=SP),
            authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password", "authn_auth": IDP},
            sign_assertion=True, sign_response=True,
            sign_alg="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",  # by itself it takes SHA-1, which is refused
            digest_alg="http://www.w3.org/2001/04/xmlenc#sha256",
        )  # fmt: skip
        return str(text)


@contextmanager
def running(keys: Keys, portals_metadata: str, folder: Path) -> Iterator[Provider]:
    """Have a provider that trusts a portal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it imports is on its way out, and not ours to mend
        from saml2.config import IdPConfig
        from saml2.metadata import entity_descriptor
        from saml2.server import Server

    key, certificate, portal = folder / "idp.key", folder / "idp.crt", folder / "portal.xml"
    key.write_bytes(keys.key)
    certificate.write_bytes(keys.certificate)
    portal.write_text(portals_metadata)
    config = IdPConfig().load(
        {
            "entityid": IDP,
            "xmlsec_binary": shutil.which("xmlsec1"),
            "service": {
                "idp": {
                    "endpoints": {"single_sign_on_service": [(SSO, REDIRECT)]},
                    "policy": {"default": {"lifetime": {"minutes": 5}, "attribute_restrictions": None}},
                }
            },
            "metadata": {"local": [str(portal)]},
            "key_file": str(key),
            "cert_file": str(certificate),
        }
    )
    server = Server(config=config)
    try:
        yield Provider(server, str(entity_descriptor(config)))
    finally:
        server.close()

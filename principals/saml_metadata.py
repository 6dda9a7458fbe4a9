"""What the metadata of a SAML provider say: where it signs people in, and by which keys it signs."""

from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from django.core.cache import cache
from django.core.checks import CheckMessage, Error
from django.utils.dateparse import parse_datetime

from portal.core import clock
from portal.core.saml import Saml

MAX_BYTES = 2_000_000
FETCHED_FOR_S = 4 * 3600
_MD = "{urn:oasis:names:tc:SAML:2.0:metadata}"


def check(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a file of metadata that nobody can sign in by. An address is asked when somebody signs in."""
    choices: Saml = settings.SIGN_IN.saml
    if not choices.is_set or choices.is_address or settings.SIGN_IN.faults:
        return []
    try:
        provider_of(choices)
    except (ValueError, OSError) as error:
        hint = "Save the provider’s metadata anew, as GATEHOUSE_SAML_METADATA names them."
        return [Error(f"SAML cannot start. {error}", hint=hint, id="gatehouse.E010")]
    return []


def provider_of(choices: Saml) -> dict[str, Any]:
    """Return what the metadata say of the provider, as python3-saml takes it. Errors: `ValueError`, `OSError`."""
    if not choices.is_address:
        path = Path(choices.metadata)
        return _valid(_within(path.read_bytes()), choices.provider)
    key = f"saml-metadata:{choices.metadata}"
    if (kept := cache.get(key)) is not None:
        with suppress(ValueError):  # what it was valid until may have passed: there is newer
            return _valid(kept, choices.provider)
    text = _fetched(choices.metadata)
    found = _valid(text, choices.provider)  # what cannot be read is not kept
    cache.set(key, text, FETCHED_FOR_S)
    return found


def _fetched(address: str) -> bytes:
    with requests.get(address, timeout=10, stream=True, allow_redirects=False) as answer:
        if answer.status_code != requests.codes.ok:
            raise ValueError(f"The metadata’s address answers {answer.status_code}.")
        text = b""
        for chunk in answer.iter_content(65536):
            text = _within(text + chunk)
        return text


def _within(text: bytes) -> bytes:
    if len(text) > MAX_BYTES:
        raise ValueError("The metadata are larger than two megabytes.")
    return text


def _valid(text: bytes, provider: str) -> dict[str, Any]:
    """Return what is valid now: it is looked at anew each time, for a process outlives metadata."""
    found, until = _parsed(text, provider)
    if until is not None and until <= clock.now():
        raise ValueError("The metadata are valid no more.")
    return found


@lru_cache(maxsize=4)
def _parsed(text: bytes, provider: str) -> tuple[dict[str, Any], datetime | None]:
    """Return what they say, and until when that is valid: by the nearest end of all that the provider stands in."""
    from onelogin.saml2.idp_metadata_parser import OneLogin_Saml2_IdPMetadataParser as Parser
    from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

    try:
        root = Xml.to_etree(text)  # refuses document types and entities
        entities = [root] if root.tag == f"{_MD}EntityDescriptor" else root.findall(f".//{_MD}EntityDescriptor")
        named = [entity for entity in entities if entity.find(f"{_MD}IDPSSODescriptor") is not None]
        if provider:
            named = [entity for entity in named if entity.get("entityID") == provider]
        if len(named) != 1:
            raise ValueError(
                f"The metadata tell of {len(named)} providers; set GATEHOUSE_SAML_PROVIDER to the entity id of one."
            )
        ends = [each.get("validUntil") for each in (named[0], *named[0].iterancestors()) if each.get("validUntil")]
        until = min((_instant(end) for end in ends), default=None)
        found: dict[str, Any] = Parser.parse(text, entity_id=named[0].get("entityID")).get("idp", {})
    except (SyntaxError, TypeError, AttributeError) as error:
        raise ValueError("The metadata are no XML of SAML.") from error
    certificates = found.get("x509certMulti", {}).get("signing") or found.get("x509cert")
    where = found.get("singleSignOnService", {}).get("url", "")
    if not certificates or not found.get("entityId") or len(found["entityId"]) > 240:
        raise ValueError("The metadata hold no entity id, or no certificate that signs.")
    if urlsplit(where).scheme not in {"https", "http"}:
        raise ValueError("The metadata hold no address for sign-in by HTTP-Redirect.")
    return found, until


def _instant(text: str) -> datetime:
    found = parse_datetime(text)
    if found is None:
        raise ValueError("The metadata do not say legibly until when they are valid.")
    return found if found.tzinfo else found.replace(tzinfo=UTC)

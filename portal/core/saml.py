"""SAML 2.0 as the environment says it."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SAML = "saml"
ACS_PATH, METADATA_PATH = "/sign-in/saml/acs/", "/sign-in/saml/metadata/"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
UNSPECIFIED = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Saml:
    """The site's choices. `metadata` is a file or an https:// address; attributes are told by their `Name`."""

    metadata: str = ""
    provider: str = ""
    entity_id: str = ""
    name: str = ""
    login: str = ""
    subject: str = ""
    groups: str = ""
    unasked: bool = False

    @property
    def is_set(self) -> bool:
        return bool(self.metadata and self.login)

    @property
    def is_address(self) -> bool:
        return self.metadata.startswith(("https://", "http://"))


def read(env: Any, *, facility: str) -> Saml:
    """Read the choices."""
    return Saml(
        metadata=env.str("GATEHOUSE_SAML_METADATA", default="").strip(),
        provider=env.str("GATEHOUSE_SAML_PROVIDER", default="").strip(),
        entity_id=env.str("GATEHOUSE_SAML_ENTITY_ID", default="").strip(),
        name=env.str("GATEHOUSE_SAML_NAME", default="") or facility,
        login=env.str("GATEHOUSE_SAML_LOGIN", default="").strip(),
        subject=env.str("GATEHOUSE_SAML_SUBJECT", default="").strip(),
        groups=env.str("GATEHOUSE_SAML_GROUPS", default="").strip(),
        unasked=env.bool("GATEHOUSE_SAML_UNASKED", default=False),
    )


def faults(found: Saml) -> list[tuple[bool, str, str]]:
    """Say what is set without what it needs, as (whether, what, what mends it)."""
    given = found.metadata or found.provider or found.entity_id or found.login or found.subject or found.groups
    parts = urlsplit(found.metadata)
    return [
        (
            bool(given) and not found.is_set,
            "SAML is half set.",
            "Set GATEHOUSE_SAML_METADATA and GATEHOUSE_SAML_LOGIN, or none of the GATEHOUSE_SAML_… variables.",
        ),
        (
            found.is_address and parts.scheme != "https" and parts.hostname not in _LOOPBACK,
            "GATEHOUSE_SAML_METADATA is no https:// address: whoever alters it on its way signs in as anybody.",
            "Use the provider’s https:// address, or a file.",
        ),
        (
            bool(found.metadata) and not found.is_address and not Path(found.metadata).is_file(),
            "GATEHOUSE_SAML_METADATA names a file that is not there.",
            "Save the provider’s metadata there, or name its https:// address.",
        ),
        (
            bool(given) and importlib.util.find_spec("onelogin") is None,
            "SAML is set, and python3-saml is not installed.",
            "Install Gatehouse with its extra: pip install -c constraints.txt '.[server,saml]'.",
        ),
    ]


def app(choices: Saml) -> dict[str, Any]:
    """Return the provider as django-allauth takes it; no app where none is set."""
    return {"APPS": [{"client_id": SAML, "name": choices.name, "secret": ""}] if choices.is_set else []}

"""Where webhooks may go: hosts that the site names, by https; by http only to this host itself, where it says so.

One grammar reads what the site names and what a person asks for, and nothing else takes an address apart: two readers
of one address are how a request ends where nobody allowed it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from portal.core.errors import Invalid, NotAllowed

MAX_ADDRESS: Final = 300
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1"})
_NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
_PORT = r"(?::(?P<port>[1-9][0-9]{0,4}))?"
_ENTRY = re.compile(rf"(?P<scheme>http://)?(?P<wild>\*\.)?(?P<host>{_NAME}){_PORT}\Z")
# No user, no fragment, nothing that two readers could read in two ways.
_ADDRESS = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_NAME}){_PORT}(?P<path>/[A-Za-z0-9/._~!$&'()*+,;=:%?-]*)?\Z",
    re.IGNORECASE | re.ASCII,  # else a Kelvin sign is a k
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """One entry of the site's list."""

    host: str
    port: int
    is_wild: bool = False
    is_tls: bool = True

    def admits(self, place: "Place") -> bool:
        """Say whether a place is one that this entry names."""
        if (self.port, self.is_tls) != (place.port, place.is_tls):
            return False
        return place.host.endswith(f".{self.host}") if self.is_wild else place.host == self.host


@dataclass(frozen=True, slots=True)
class Place:
    """An address taken apart: who is connected to, and what is asked for there."""

    host: str
    port: int
    path: str
    is_tls: bool

    @property
    def is_here(self) -> bool:
        """Whether it is this host itself."""
        return self.host in LOOPBACK

    @property
    def authority(self) -> str:
        """The place as its `Host` header names it."""
        return self.host if self.port == (443 if self.is_tls else 80) else f"{self.host}:{self.port}"


def read_allowed(entries: Iterable[str]) -> tuple[Allowed, ...]:
    """Read the site's list: `hooks.example.org`, `*.example.org`, either with `:port`; `http://127.0.0.1:port`.

    Errors: `ValueError`, in one sentence, for an entry that is none.
    """
    return tuple(_read_entry(entry.strip().lower()) for entry in entries if entry.strip())


def _read_entry(entry: str) -> Allowed:
    found = _ENTRY.match(entry)
    port = int(found["port"] or (80 if found["scheme"] else 443)) if found else 0
    if found is None or port > 65535:
        raise ValueError(f"GATEHOUSE_WEBHOOK_HOSTS: {entry[:80]!r} is no host name, *.domain or either with :port.")
    if found["wild"] and "." not in found["host"]:
        raise ValueError(f"GATEHOUSE_WEBHOOK_HOSTS: {entry[:80]!r} takes in a whole top-level domain.")
    if found["scheme"] and (found["wild"] or found["host"] not in LOOPBACK):
        raise ValueError(f"GATEHOUSE_WEBHOOK_HOSTS: {entry[:80]!r}: http:// is for localhost and 127.0.0.1 alone.")
    return Allowed(found["host"], port, bool(found["wild"]), not found["scheme"])


def read_address(address: str) -> Place:
    """Take an address apart. Errors: `Invalid` for what is none of ours."""
    found = _ADDRESS.match(address) if len(address) <= MAX_ADDRESS else None
    is_tls = found is not None and found["scheme"].lower() == "https"
    port = int(found["port"] or (443 if is_tls else 80)) if found else 0
    if found is None or port > 65535:
        raise Invalid(
            "This is no address that a webhook can have.", code="address_malformed",
            remedy=f"Write it as https://host/path, in ASCII, without a user or a #part, {MAX_ADDRESS} characters at "
            "most.", extra={"field": "address"},
        )  # fmt: skip
    return Place(found["host"].lower(), port, found["path"] or "/", is_tls)


def require(place: Place, allowed: Iterable[Allowed]) -> None:
    """Refuse a place that the site does not name. Errors: `NotAllowed` `host_not_allowed`."""
    if not any(entry.admits(place) for entry in allowed):
        what = place.authority if place.is_tls else f"http://{place.authority}"
        raise NotAllowed(
            f"The site lets no webhook go to {what}.", code="host_not_allowed",
            remedy="Ask research computing to add the host to GATEHOUSE_WEBHOOK_HOSTS, or choose one that it names.",
            extra={"field": "address"},
        )  # fmt: skip

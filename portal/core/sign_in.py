"""How people sign in, as the environment says it: one frozen value for settings, checks and views."""

import re
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any
from urllib.parse import urlsplit

from portal.core import saml
from portal.core.saml import Saml

ROLES = ("staff", "infosec", "auditor", "none")
UNKNOWN = ("refuse", "add")
SECOND_FACTOR = ("offer", "staff")
OIDC = "oidc"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADER = re.compile(r"[Xx]-(?![Ff]orwarded)[A-Za-z0-9-]{1,60}")
_OIDC_PARTS = ("ISSUER", "CLIENT_ID", "CLIENT_SECRET")


@dataclass(frozen=True, slots=True)
class SignIn:
    """The site's choices. `faults` are (what is wrong, what mends it): the system check shows them."""

    local: bool = True
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_secret: str = field(default="", repr=False)
    oidc_name: str = ""
    oidc_scopes: tuple[str, ...] = ()
    login_claim: str = ""
    groups_claim: str = ""
    system_groups: bool = False
    group_roles: tuple[tuple[str, str], ...] = ()
    unknown: str = "refuse"
    remote_header: str = ""
    remote_from: tuple[IPv4Network | IPv6Network, ...] = ()
    second_factor: str = "offer"
    saml: Saml = field(default_factory=Saml)
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def by_oidc(self) -> bool:
        return bool(self.oidc_issuer and self.oidc_client_id and self.oidc_secret)

    @property
    def by_remote_user(self) -> bool:
        return bool(self.remote_header and self.remote_from)

    @property
    def reads_groups(self) -> bool:
        """Whether roles follow groups at all."""
        return bool(self.group_roles)


def read(env: Any, *, facility: str) -> SignIn:
    """Read the choices; what cannot be read is a fault, never a guess."""
    faults: list[tuple[str, str]] = []
    found = SignIn(
        local=env.bool("GATEHOUSE_LOCAL_SIGN_IN", default=True),
        oidc_issuer=env.str("GATEHOUSE_OIDC_ISSUER", default="").strip(),
        oidc_client_id=env.str("GATEHOUSE_OIDC_CLIENT_ID", default=""),
        oidc_secret=env.str("GATEHOUSE_OIDC_CLIENT_SECRET", default="").strip(),
        oidc_name=env.str("GATEHOUSE_OIDC_NAME", default="") or facility,
        oidc_scopes=tuple(env.str("GATEHOUSE_OIDC_SCOPES", default="openid profile email").split()),
        login_claim=env.str("GATEHOUSE_LOGIN_CLAIM", default=""),
        groups_claim=env.str("GATEHOUSE_GROUPS_CLAIM", default=""),
        system_groups=env.bool("GATEHOUSE_SYSTEM_GROUPS", default=False),
        group_roles=_group_roles(env.str("GATEHOUSE_GROUP_ROLES", default=""), faults),
        unknown=_choice(env, "GATEHOUSE_UNKNOWN_PEOPLE", UNKNOWN, faults),
        remote_header=env.str("GATEHOUSE_REMOTE_USER_HEADER", default="").strip(),
        remote_from=_networks(env.str("GATEHOUSE_REMOTE_USER_FROM", default=""), faults),
        second_factor=_choice(env, "GATEHOUSE_SECOND_FACTOR", SECOND_FACTOR, faults),
        saml=saml.read(env, facility=facility),
    )
    return replace(found, faults=(*faults, *_half_set(found)))


def openid_app(choices: SignIn) -> dict[str, Any]:
    """Return the provider as django-allauth takes it; no app where none is set."""
    if not choices.by_oidc:
        return {"APPS": []}
    app = {
        "provider_id": OIDC,
        "name": choices.oidc_name,
        "client_id": choices.oidc_client_id,
        "secret": choices.oidc_secret,
        "settings": {
            "server_url": choices.oidc_issuer.rstrip("/"),  # an issuer may end in one; its document's address has one
            "oauth_pkce_enabled": True,
            "scope": list(choices.oidc_scopes),
        },
    }
    return {"APPS": [app]}


def _choice(env: Any, name: str, known: tuple[str, ...], faults: list[tuple[str, str]]) -> str:
    value: str = env.str(name, default=known[0])
    if value not in known:
        faults.append((f"{name} is {value!r}.", f"Set it to {' or '.join(known)}."))
        return known[0]
    return value


def _group_roles(text: str, faults: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Read `group=role; group=role`. A group may be a distinguished name: the last `=` divides."""
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        group, _, role = (word.strip() for word in part.rpartition("="))
        if not group or role not in ROLES:
            faults.append(
                (f"GATEHOUSE_GROUP_ROLES cannot be read at {part!r}.",
                 f"Write group=role; group=role, where a role is {', '.join(ROLES[:-1])} or {ROLES[-1]}.")
            )  # fmt: skip
        else:
            pairs.append((group, role))
    return tuple(pairs)


def _networks(text: str, faults: list[tuple[str, str]]) -> tuple[IPv4Network | IPv6Network, ...]:
    found = []
    for part in text.replace(",", " ").split():
        try:
            network = ip_network(part)
        except ValueError:
            network = None
        if network is None or not network.prefixlen:
            faults.append(
                (f"GATEHOUSE_REMOTE_USER_FROM has {part!r}.",
                 "Name the front’s own addresses, as 127.0.0.1 10.0.4.7/32; never all there are.")
            )  # fmt: skip
        else:
            found.append(network)
    return tuple(found)


def _half_set(found: SignIn) -> list[tuple[str, str]]:
    """Say what is set without what it needs."""
    return [
        (what, remedy)
        for bad, what, remedy in (*_of_provider(found), *saml.faults(found.saml), *_of_front(found), *_of_groups(found))
        if bad
    ]


def _of_provider(found: SignIn) -> list[tuple[bool, str, str]]:
    given = dict(zip(_OIDC_PARTS, (found.oidc_issuer, found.oidc_client_id, found.oidc_secret), strict=True))
    missing = [f"GATEHOUSE_OIDC_{name}" for name, value in given.items() if not value]
    return [
        (
            0 < len(missing) < len(given),
            "OpenID Connect is half set.",
            f"Set {' and '.join(missing)} too, or none of the GATEHOUSE_OIDC_… variables.",
        ),
        (
            bool(found.oidc_issuer) and not _is_safe(found.oidc_issuer),
            "GATEHOUSE_OIDC_ISSUER is no https:// address.",
            "Use the provider’s https:// address.",
        ),
        (
            bool(found.oidc_issuer) and "openid" not in found.oidc_scopes,
            "GATEHOUSE_OIDC_SCOPES lacks openid.",
            "Set it to `openid profile email` or more.",
        ),
        (
            found.unknown == "add" and found.by_oidc and not found.login_claim,
            "GATEHOUSE_UNKNOWN_PEOPLE is add, and nothing says under which login name.",
            "Set GATEHOUSE_LOGIN_CLAIM to the claim that is the login name on your clusters.",
        ),
        (
            not (found.local or found.by_oidc or found.saml.is_set or found.by_remote_user),
            "Nobody can sign in: GATEHOUSE_LOCAL_SIGN_IN is off and nothing else is set.",
            "Set the GATEHOUSE_OIDC_… or GATEHOUSE_SAML_… variables, or those of GATEHOUSE_REMOTE_USER_….",
        ),
    ]


def _of_front(found: SignIn) -> list[tuple[bool, str, str]]:
    return [
        (
            bool(found.remote_header) and not found.remote_from,
            "GATEHOUSE_REMOTE_USER_HEADER is set, and no address may send it.",
            "Set GATEHOUSE_REMOTE_USER_FROM to the addresses from which your front calls the portal.",
        ),
        (
            bool(found.remote_from) and not found.remote_header,
            "GATEHOUSE_REMOTE_USER_FROM is set without a header.",
            "Set GATEHOUSE_REMOTE_USER_HEADER, as X-Remote-User, or unset it.",
        ),
        (
            bool(found.remote_header) and not _HEADER.fullmatch(found.remote_header),
            "GATEHOUSE_REMOTE_USER_HEADER is no header of its own.",
            "Name one that begins with X- and that only your front sends, as X-Remote-User.",
        ),
    ]


def _of_groups(found: SignIn) -> list[tuple[bool, str, str]]:
    reads = bool(found.groups_claim or found.saml.groups or found.system_groups)
    return [
        (
            bool(found.group_roles) and not reads,
            "GATEHOUSE_GROUP_ROLES is set, and nothing says which groups a person is in.",
            "Set GATEHOUSE_GROUPS_CLAIM or GATEHOUSE_SAML_GROUPS, or GATEHOUSE_SYSTEM_GROUPS=1 for this host’s.",
        ),
        (
            reads and not found.group_roles,
            "Groups are read, and none gives a role.",
            "Set GATEHOUSE_GROUP_ROLES, as rc-staff=staff; ciso=infosec.",
        ),
        (
            bool(found.groups_claim) and not found.by_oidc,
            "GATEHOUSE_GROUPS_CLAIM is set without a provider that tells it.",
            "Set the GATEHOUSE_OIDC_… variables, or unset it.",
        ),
        (
            bool(found.login_claim) and not found.by_oidc,
            "GATEHOUSE_LOGIN_CLAIM is set without a provider that tells it.",
            "Set the GATEHOUSE_OIDC_… variables, or unset it.",
        ),
    ]


def _is_safe(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)

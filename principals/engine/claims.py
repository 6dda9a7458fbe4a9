"""What a provider says of whoever signs in, and the roles that follow from groups."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

MAX_GROUPS = 2000  # a token of more is no token


@dataclass(frozen=True, slots=True)
class Claims:
    """Who signs in, as the provider says. `login` and `email` are empty where they may not be relied upon."""

    issuer: str
    subject: str
    login: str = ""
    email: str = ""
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Roles:
    """What a person holds, and which of it groups gave."""

    held: frozenset[str]
    from_groups: frozenset[str]


def read_claims(said: Mapping[str, Any], *, issuer: str, login_claim: str = "", groups_claim: str = "") -> Claims:
    """Read the claims of OpenID Connect Core 1.0 §5.1.

    The address counts only where `email_verified` is true itself: a text that says "true" is no proof. The login
    name counts only where the site names its claim. Raises ValueError where there is no subject.
    """
    subject = said.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise ValueError("The provider names no subject.")
    email = said.get("email") if said.get("email_verified") is True else ""
    return Claims(
        issuer=issuer,
        subject=subject,
        login=_text(said.get(login_claim)) if login_claim else "",
        email=_text(email),
        groups=_groups(said.get(groups_claim)) if groups_claim else frozenset(),
    )


def both_said(token: Mapping[str, Any], userinfo: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims of the ID token and of the answer about the user; of what both tell, the answer's.

    That an address is verified is believed of the address beside it alone: never of one that the other tells.
    """
    said = {**token, **userinfo}
    if "email" in userinfo and userinfo["email"] != token.get("email"):
        said["email_verified"] = userinfo.get("email_verified")
    return said


def same_address(one: str, other: str) -> bool:
    """Say whether two addresses are the same one: ASCII alone, for other letters look alike in some case."""
    return bool(one) and one.isascii() and other.isascii() and one.lower() == other.lower()


def roles_of(groups: Set[str], mapping: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the roles that somebody's groups give."""
    return frozenset(role for group, role in mapping if group in groups and role != "none")


def settle(now: Roles, wanted: Set[str]) -> Roles:
    """Return what a person holds after a sign-in: what was given by hand, and what the groups give now."""
    by_hand = now.held - now.from_groups
    return Roles(held=by_hand | wanted, from_groups=frozenset(wanted - by_hand))


def _text(value: object) -> str:
    """Return a text as it is: a provider may know ` alice` and `alice` as two people."""
    return value if isinstance(value, str) and len(value) <= 254 and value.isprintable() else ""


def _groups(value: object) -> frozenset[str]:
    """Read a list of names, or one name. A text is not divided: distinguished names hold commas and spaces."""
    if isinstance(value, str):
        return frozenset({value})
    if isinstance(value, list) and len(value) <= MAX_GROUPS:
        return frozenset(item for item in value if isinstance(item, str))
    return frozenset()

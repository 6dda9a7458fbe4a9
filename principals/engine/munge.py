"""What a MUNGE credential says: the statement that `gatehouse login` puts into it, and what unmunge(1) tells of it.

MUNGE proves which uid made a credential on some host of a realm, hosts with common users and one key (munge(7)), and
when. That alone would open whatever takes MUNGE credentials: so the statement names the portal that it is for, and a
number that this portal gave, once.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

TTL_S: Final = 60  # as the command asks; munged refuses it before and after, by its own clock
CREDENTIAL: Final = r"MUNGE:[0-9A-Za-z+/=]{16,8000}:"
NAME: Final = r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}"
_NUMBER = re.compile(r"\((\d+)\)$")
_HOST = re.compile(r"(\S+) \(([0-9a-fA-F.:]+)\)$")


@dataclass(frozen=True, slots=True)
class Statement:
    """What whoever logs in says, inside the credential: for which portal, with which of its numbers, from where."""

    portal: str
    nonce: str
    host: str
    agent: str = ""  # empty: the only one of that person
    cluster: str = ""  # empty: any that the portal takes
    scopes: tuple[str, ...] = ()  # empty: the default ones

    def encode(self) -> bytes:
        """Write it as the payload of a credential."""
        return json.dumps(asdict(self)).encode()


def read_statement(payload: bytes) -> Statement | None:
    """Read a payload; None for what is no statement of ours."""
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError):  # the latter for brackets within brackets
        return None
    names = {"portal", "nonce", "host", "agent", "cluster"}
    if not isinstance(data, dict) or set(data) != names | {"scopes"}:
        return None
    scopes = data.pop("scopes")
    texts = [*data.values(), *scopes] if isinstance(scopes, list) else [None]
    if not all(isinstance(text, str) and len(text) <= 300 and text.isprintable() for text in texts):
        return None
    said = Statement(**data, scopes=tuple(scopes))
    is_named = all(not name or re.fullmatch(NAME, name) for name in (said.agent, said.cluster))
    return said if is_named and re.fullmatch(NAME, said.host) else None


@dataclass(frozen=True, slots=True)
class Decoded:
    """A credential as unmunge(1) tells it: who made it, where, when, and what is in it."""

    uid: int
    gid: int
    host: str  # by its name where the portal's host knows one, else by its address
    address: str
    encoded_s: int
    decoded_s: int
    ttl_s: int
    payload: bytes

    @property
    def ahead_s(self) -> int:
        """How far the clock of the node was before that of the portal's host, at least."""
        return self.encoded_s - self.decoded_s

    @property
    def attested_host(self) -> str:
        """The host by the node's munged; "" where it told only that it is itself (munged(8), `--origin`)."""
        return "" if self.address.startswith("127.") or self.address in ("0.0.0.0", "::1") else self.host  # noqa: S104


def read_unmunged(output: bytes) -> Decoded | None:
    """Read what unmunge(1) prints: lines of `KEY: value`, an empty one, the payload. None for anything else."""
    head, _, payload = output.partition(b"\n\n")
    told = dict(_pair(line) for line in head.decode(errors="replace").splitlines())
    host = _HOST.match(told.get("ENCODE_HOST", ""))
    numbers = {name: _number(told, name) for name in ("UID", "GID", "ENCODE_TIME", "DECODE_TIME")}
    ttl = told.get("TTL", "")
    if host is None or not ttl.isdecimal() or None in numbers.values():
        return None
    uid, gid, encoded_s, decoded_s = (number or 0 for number in numbers.values())
    return Decoded(uid, gid, host[1], host[2], encoded_s, decoded_s, int(ttl), payload)


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _number(told: Mapping[str, str], name: str) -> int | None:
    found = _NUMBER.search(told.get(name, ""))
    return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a credential is refused: a stable code, a sentence, and what would make it pass."""

    code: str
    sentence: str
    remedy: str


# The exit status of unmunge(1) is the error number of munge(3).
_EXPIRED, _REWOUND, _REPLAYED, _UNAUTHORIZED = 15, 16, 17, 18
_OTHER_REALM: Final = (13, 14)
_MALFORMED: Final = range(8, 13)
_CLOCKS = "Compare the clocks of this node and of the portal’s host (chronyc tracking), then log in again."
_AGAIN = "Run gatehouse login again: it makes a new one."
AWAY = Refusal(
    "munge_away", "The portal could not ask its own munged.", "Try again; if it stays, tell the portal’s operators."
)


def refusal_of(status: int, decoded: Decoded | None) -> Refusal | None:
    """Say why a credential is refused, by how unmunge(1) ended and what it told; None for one that is good."""
    ahead_s = decoded.ahead_s if decoded else 0
    if status == 0:
        return None if decoded else AWAY
    if status == _EXPIRED:
        return Refusal("munge_expired", f"The credential was made {-ahead_s} s ago by the portal’s clock.", _CLOCKS)
    if status == _REWOUND:
        return Refusal("munge_rewound", f"The credential was made {ahead_s} s from now by the portal’s clock.", _CLOCKS)
    if status == _REPLAYED:
        return Refusal("munge_replayed", "The credential was used already: each is good for once.", _AGAIN)
    if status == _UNAUTHORIZED:
        return Refusal("munge_not_for_portal", "The credential is for somebody else to read.", _AGAIN)
    if status in _OTHER_REALM:
        return Refusal(
            "munge_other_realm", "The credential was made with another key than the portal’s host has.",
            "Log in on a node of a cluster that this portal takes; the site names them.",
        )  # fmt: skip
    if status in _MALFORMED:
        return Refusal("munge_malformed", "That is no credential of MUNGE.", "Send what munge(1) prints.")
    return AWAY

"""Bearer tokens: shape, making, digest, verification.

A token reads ``gha_<key>.<secret>``: the key finds the row, the secret proves the holder. Only the digest
of the secret is kept, made with a numbered pepper, so that peppers can rotate while old tokens live.
"""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
KEY_LENGTH = 12
SECRET_LENGTH = 40  # 40 base-62 characters hold 238 bits


class TokenKind(Enum):
    """Who carries the token; the value is its prefix."""

    AGENT = "gha"
    SERVICE = "ghs"


# Shared with the secret detector, which must recognise our own tokens in a submit line.
TOKEN_PATTERN = (
    rf"(?:{'|'.join(kind.value for kind in TokenKind)})_"
    rf"[0-9A-Za-z]{{{KEY_LENGTH}}}\.[0-9A-Za-z]{{{SECRET_LENGTH}}}"
)


@dataclass(frozen=True, slots=True)
class TokenParts:
    """A token taken apart; the secret stays out of ``repr`` and so out of logs."""

    kind: TokenKind
    key: str
    secret: str = field(repr=False)

    @property
    def plain(self) -> str:
        """The whole token, as its holder sends it."""
        return f"{self.kind.value}_{self.key}.{self.secret}"

    @property
    def masked(self) -> str:
        """What may be shown after the token was made: its prefix and key."""
        return f"{self.kind.value}_{self.key}.…"


@dataclass(frozen=True, slots=True)
class TokenDigest:
    """What is stored of a secret: the number of the pepper and 64 hexadecimal digits."""

    pepper_id: int
    digest: str


def _random_text(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def make_token(kind: TokenKind) -> TokenParts:
    """Make a new random token of a kind."""
    return TokenParts(kind, _random_text(KEY_LENGTH), _random_text(SECRET_LENGTH))


def parse_token(text: str) -> TokenParts | None:
    """Take a token apart; ``None`` when it does not have our shape."""
    if re.fullmatch(TOKEN_PATTERN, text, re.ASCII) is None:
        return None
    kind, _, rest = text.partition("_")
    key, _, secret = rest.partition(".")
    return TokenParts(TokenKind(kind), key, secret)


def _hmac_hex(parts: TokenParts, pepper: bytes) -> str:
    # The whole token is digested, so that a secret cannot be moved to another key or kind.
    return hmac.new(pepper, parts.plain.encode("ascii"), hashlib.sha256).hexdigest()


def digest_token(parts: TokenParts, peppers: Mapping[int, bytes]) -> TokenDigest:
    """Digest a token with the newest pepper, the one with the highest number.

    Raises ``ValueError`` when there is no pepper or it is shorter than 16 bytes.
    """
    if not peppers:
        raise ValueError("No token pepper is configured.")
    pepper_id = max(peppers)
    if len(peppers[pepper_id]) < 16:
        raise ValueError(f"Token pepper {pepper_id} is shorter than 16 bytes.")
    return TokenDigest(pepper_id, _hmac_hex(parts, peppers[pepper_id]))


def verify_token(parts: TokenParts, stored: TokenDigest, peppers: Mapping[int, bytes]) -> bool:
    """Say in constant time whether a token is the one that was stored.

    A token whose pepper has been withdrawn no longer verifies.
    """
    pepper = peppers.get(stored.pepper_id)
    if pepper is None:
        return False
    return hmac.compare_digest(_hmac_hex(parts, pepper), stored.digest)

"""The device authorization grant (RFC 8628): codes, and what whoever asks with one is told."""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:device_code"
LIFE_S: Final = 600
INTERVAL_S: Final = 5  # between two questions (RFC 8628, 3.2), and what one that comes too early adds (3.5)
# No vowels, so no words, and nothing that is read as something else (RFC 8628, 6.1): 8 of 20 letters hold 34 bits.
LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
LENGTH: Final = 8


class Standing(Enum):
    """Where a login of a device stands."""

    WAITING = "waiting"
    APPROVED = "approved"
    REFUSED = "refused"
    USED = "used"


class Answer(Enum):
    """What a question is answered with; the values are the errors of RFC 8628, 3.5."""

    TOKEN = "token"  # noqa: S105 - no secret
    PENDING = "authorization_pending"
    SLOW_DOWN = "slow_down"
    DENIED = "access_denied"
    EXPIRED = "expired_token"
    USED = "invalid_grant"


def make_device_code() -> str:
    """Make the code that the device alone knows: 256 bits."""
    return secrets.token_urlsafe(32)


def make_user_code() -> str:
    """Make the code that its person types."""
    letters = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def read_user_code(typed: str) -> str | None:
    """Return a code as `make_user_code` writes it, however it was typed; None for what is none."""
    letters = re.sub(r"[\s\-_.]", "", typed).upper()
    if len(letters) != LENGTH or not set(letters) <= set(LETTERS):
        return None
    return f"{letters[:4]}-{letters[4:]}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a device, and what came before it."""

    standing: Standing
    expires: datetime
    last_asked: datetime | None
    interval_s: int


def answer_to(asked: Asked, now: datetime) -> Answer:
    """Say what a question is answered with: what is decided first, then whether it comes too early."""
    if asked.standing is Standing.USED:
        return Answer.USED
    if asked.expires <= now:
        return Answer.EXPIRED
    if asked.standing is Standing.REFUSED:
        return Answer.DENIED
    if asked.standing is Standing.APPROVED:
        return Answer.TOKEN
    is_early = asked.last_asked is not None and now - asked.last_asked < timedelta(seconds=asked.interval_s)
    return Answer.SLOW_DOWN if is_early else Answer.PENDING

"""What people are told of, how they may be told it, and when a mail goes: no clock and no settings inside."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

DIGEST_HOUR: Final = time(7)  # local: before the day's work
MAX_TITLE: Final = 150
MAX_TEXT: Final = 2000
# Of marks that turn the direction of what follows, and of every other control: a line end in a subject begins a header.
_CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class How(StrEnum):
    """How a kind is mailed."""

    OFF = "off"
    AT_ONCE = "at_once"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of notice: what people call it, how it is mailed unless they choose otherwise, and whether webhooks go."""

    name: str
    words: str
    mailed: How = How.AT_ONCE
    to_webhooks: bool = True


# A new kind is a line here; `principals.services.notify` takes no other.
KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("hold_placed", "An agent of yours, or of your lab, is stopped"),
        Kind("hold_lifted", "It may work again"),
        Kind("agent_waiting", "An agent waits for your approval", How.DAILY),  # somebody cannot work until then
        Kind("agent_approved", "An agent of yours was approved"),
        Kind("handover_asked", "An agent is to pass to somebody else"),
        Kind("handover_settled", "It passed, or it stays where it is"),
        Kind("agent_ending", "A registration ends soon", How.DAILY),
        Kind("token_ending", "A token ends soon", How.DAILY),
        Kind("aup_due", "The acceptable-use policy waits for an acceptance", How.DAILY),
        Kind("webhook_dead", "A webhook of yours was not delivered", How.DAILY, to_webhooks=False),
        Kind("report_published", "A report was published", How.OFF),
        Kind("appeal_filed", "Somebody appeals a hold or a label, for staff and InfoSec"),
        Kind("appeal_answered", "An appeal was answered"),
        Kind("data_opened", "Somebody opened what is held about you"),
    )
}


def one_line(text: str) -> str:
    """Return a text as one line without controls, as a subject may hold it."""
    return " ".join(_plain(text.replace("\t", " ").replace("\n", " ")).split())[:MAX_TITLE]


def some_lines(text: str) -> str:
    """Return a text without controls but line ends, of which at most two follow one another."""
    lines = [" ".join(_plain(line).split()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()[:MAX_TEXT]


def _plain(text: str) -> str:
    return "".join(letter for letter in text if unicodedata.category(letter) not in _CONTROLS)


def mail_time(how: How, *, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return from when a notice may be mailed: now, at seven on the next day, Monday or first of a month; None: not."""
    if how is How.OFF:
        return None
    if how is How.AT_ONCE:
        return now
    local = now.astimezone(zone)
    day = local.date() if local.time() < DIGEST_HOUR else local.date() + timedelta(days=1)
    while (how is How.WEEKLY and day.weekday() != 0) or (how is How.MONTHLY and day.day != 1):
        day += timedelta(days=1)
    return datetime.combine(day, DIGEST_HOUR, tzinfo=zone).astimezone(now.tzinfo)


@dataclass(frozen=True, slots=True)
class Due:
    """A notice whose time to be mailed has come."""

    id: int
    is_digest: bool


def mails_of(due: Sequence[Due], *, room: int) -> list[list[int]]:
    """Return which notices of a person go into which mail; at most `room` mails, and every notice is in one.

    Where there is no room all wait. The last mail that there is room for takes whatever is left.
    """
    if room <= 0 or not due:
        return []
    digest = [one.id for one in due if one.is_digest]
    single = [one.id for one in due if not one.is_digest]
    alone = room if not digest and len(single) <= room else room - 1
    joined = sorted([*digest, *single[alone:]])
    return [[one] for one in single[:alone]] + ([joined] if joined else [])

"""What `sdiag` says the controller was asked, by user: counters since its start, and what was asked between two looks.

Source: sdiag(1), "Remote Procedure Call statistics by user". Counters start anew with slurmctld, at midnight UTC in
releases before 23.11, and by `sdiag --reset`.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from telemetry.engine.slurm.errors import SHOWN, FormatError

_SINCE: Final = re.compile(r"^Data since .*\(([0-9]{1,12})\)\s*$", re.MULTILINE)
_SECTION: Final = re.compile(r"^Remote Procedure Call statistics by user[^\n]*\n((?:[ \t]+[^\n]*\n?)*)", re.MULTILINE)
# No name and no number that a column cannot hold.
_LINE: Final = re.compile(
    r"\s+([^\s\x00-\x1f\x7f-\x9f]{1,64})\s*\(\s*[0-9]+\)\s+count:([0-9]{1,15})\s+ave_time:[0-9]+"
    r"\s+total_time:([0-9]{1,15})",
    re.ASCII,
)


class Asked(NamedTuple):
    """What one user asked: how many calls, and how long the controller worked on them, in microseconds."""

    calls: int
    busy_us: int


_NONE: Final = Asked(0, 0)


class Statistics(NamedTuple):
    """Counters by login name since an instant (UTC epoch seconds)."""

    since_s: int
    by_user: Mapping[str, Asked]


def read_statistics(text: str) -> Statistics:
    """Read what `sdiag` printed. Errors: `FormatError` where that is no sdiag text, or a line of it is odd."""
    since, section = _SINCE.search(text), _SECTION.search(text)
    if since is None or section is None:
        raise FormatError("not_sdiag", "This is not what sdiag prints: no start of its counters, or none by user.")
    by_user: dict[str, Asked] = {}
    for line in filter(str.strip, section[1].splitlines()):
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise FormatError("not_sdiag", f"This is no counter of sdiag: {line[:SHOWN]!r}.")
        so_far = by_user.get(match[1], _NONE)  # every uid without a name is called "nobody"
        by_user[match[1]] = Asked(so_far.calls + int(match[2]), so_far.busy_us + int(match[3]))
    return Statistics(int(since[1]), by_user)


def asked_between(before: Statistics | None, after: Statistics) -> dict[str, Asked]:
    """Return what each user asked between two looks; of counters that started anew, all that they say.

    Nothing where there was no look before: for how long they have counted, nobody knows.
    """
    if before is None:
        return {}
    found = {}
    for user, now in after.by_user.items():
        then = before.by_user.get(user, _NONE)
        if after.since_s != before.since_s or now.calls < then.calls or now.busy_us < then.busy_us:
            then = _NONE
        if now.calls > then.calls:
            found[user] = Asked(now.calls - then.calls, now.busy_us - then.busy_us)
    return found

"""What `sdiag` says the controller was asked, by user: counters since its start, and what was asked between two looks.

Sources: sdiag(1), "Remote Procedure Call statistics by user". Counters start anew with slurmctld, at midnight UTC in
releases before 23.11, and by `sdiag --reset`. Its `--json`, and PySlurm 25.11's `pyslurm.slurmctld.Statistics`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from telemetry.engine.slurm.documents import Record, at, plain_number, plain_text, read_member
from telemetry.engine.slurm.errors import SHOWN, FieldError, FormatError

STATISTICS_FIELDS: Final = ("data_since", "rpcs_by_user")

_SINCE: Final = re.compile(r"^Data since .*\(([0-9]{1,12})\)\s*$", re.MULTILINE)
_SECTION: Final = re.compile(r"^Remote Procedure Call statistics by user[^\n]*\n((?:[ \t]+[^\n]*\n?)*)", re.MULTILINE)
# No name and no number that a column cannot hold.
_USER: Final = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]{1,64}")
_MOST: Final = 10**15
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
    counters = []
    for line in filter(str.strip, section[1].splitlines()):
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise FormatError("not_sdiag", f"This is no counter of sdiag: {line[:SHOWN]!r}.")
        counters.append((match[1], Asked(int(match[2]), int(match[3]))))
    return Statistics(int(since[1]), _sums(counters))


def read_statistics_json(text: str) -> Statistics:
    """Read what `sdiag --json` printed. Errors: FormatError, those of `documents.read_member`, and `not_sdiag`."""
    record, envelope = read_member(text, "statistics")
    try:
        since, users = envelope.dialect.number(at(record, "req_time_start")), at(record, "rpcs_by_user")
        return _statistics(since, [_counter(user, "user", "total_time") for user in _listed(users)])
    except FieldError as error:
        raise FormatError("not_sdiag", f"This is not what sdiag prints: {error.detail}.") from error


def read_statistics_dump(dump: Mapping[str, Any]) -> Statistics:
    """Read a dump of `pyslurm.slurmctld.Statistics`. Errors: FormatError `not_sdiag`."""
    try:
        since, users = plain_number(at(dump, "data_since")), at(dump, "rpcs_by_user")
        named = _listed(list(users.values()) if isinstance(users, Mapping) else users)
        return _statistics(since, [_counter(user, "user_name", "time") for user in named])
    except FieldError as error:
        raise FormatError("not_sdiag", f"PySlurm tells of no counters: {error.detail}.") from error


def _listed(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise FieldError("bad_record", f"{value!r:.60} is no list of users")
    return value


def _counter(record: Record, name: str, time: str) -> tuple[str, Asked]:
    user = plain_text(at(record, name))
    calls, busy_us = plain_number(at(record, "count")) or 0, plain_number(at(record, time)) or 0
    if not _USER.fullmatch(user) or not 0 <= calls < _MOST or not 0 <= busy_us < _MOST:
        raise FieldError("bad_counter", f"{record!r:.200} is no counter")
    return user, Asked(calls, busy_us)


def _statistics(since: int | None, counters: list[tuple[str, Asked]]) -> Statistics:
    if not since:
        raise FieldError("missing_field", "it does not say since when it counts")
    return Statistics(since, _sums(counters))


def _sums(counters: Iterable[tuple[str, Asked]]) -> dict[str, Asked]:
    by_user: dict[str, Asked] = {}
    for user, asked in counters:
        so_far = by_user.get(user, _NONE)  # sdiag calls every uid without a name "nobody"
        by_user[user] = Asked(so_far.calls + asked.calls, so_far.busy_us + asked.busy_us)
    return by_user


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

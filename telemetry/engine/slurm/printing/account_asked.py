"""What a command line of `sacct -X` asks for, read strictly: an option that is not on the list is the real command's.

Source: sacct(1), with 22.05 live for what it leaves open.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from telemetry.engine.slurm.printing.account_fields import BY_NAME, AccountField
from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.options import AskedJob, Grammar, read_options, read_plain_jobs

DEFAULT: Final = "jobid,jobname,partition,account,alloccpus,state,exitcode"
WIDEST: Final = 4096
_SACCT: Final = Grammar(
    flags={"X": "allocations", "P": "parsable2", "n": "noheader"},
    valued={"j": "jobs", "o": "format", "S": "starttime", "E": "endtime", "u": "user"},
    also={"uid": "user"},
)  # fmt: skip
# What makes sacct print otherwise, where it stands in the environment.
_CHANGING: Final = ("SACCT_", "SLURM_TIME", "SLURM_CLUSTERS", "SLURM_BITSTR")
_FIELD: Final = re.compile(r"([A-Za-z]+)(?:%(-?[1-9]\d{0,3}))?", re.ASCII)
_DAY: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?)?", re.ASCII)
_NOW: Final = re.compile(r"now(?:([+-])(\d{1,7})(second|minute|hour|day|week)s?)?", re.ASCII)
_UNIT_S: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


@dataclass(frozen=True)
class AskedAccounts:
    """What is asked for: fields, and jobs or a span of time (UTC, seconds since 1970; without jobs always a start).

    `until_s` of None is now, or later.
    """

    fields: tuple[AccountField, ...]
    has_header: bool = True
    is_parsable: bool = False
    user: str = ""
    jobs: tuple[AskedJob, ...] = ()
    since_s: int = 0
    until_s: int | None = None


def read_sacct_arguments(arguments: Sequence[str], environment: Mapping[str, str], *, now_s: int) -> AskedAccounts:
    """Read a command line; times are of the zone of this process. Errors: `PassedOn`."""
    if any(name.startswith(_CHANGING) for name in environment):
        raise PassedOn("environment")
    options = read_options(_SACCT, arguments)
    values = options.values
    if "allocations" not in options.flags:
        raise PassedOn("steps")
    jobs = read_plain_jobs(values.get("jobs", ""))
    usual = "" if jobs else "today"
    since_s = _read_time(values.get("starttime", usual), now_s) or 0
    until_s = _read_time(values.get("endtime", ""), now_s)
    if until_s is not None and until_s <= since_s:
        raise PassedOn("time")
    return AskedAccounts(
        fields=_read_fields(values.get("format", DEFAULT)), has_header="noheader" not in options.flags,
        is_parsable="parsable2" in options.flags, user=values.get("user", ""), jobs=jobs, since_s=since_s,
        until_s=until_s,
    )  # fmt: skip


def _read_fields(text: str) -> tuple[AccountField, ...]:
    matches = [_FIELD.fullmatch(each) for each in text.split(",")]
    if not all(matches):
        raise PassedOn("format")
    fields = []
    for match in filter(None, matches):
        field = BY_NAME.get(match[1].lower())
        if field is None:
            raise PassedOn("field")
        width = int(match[2] or field.width)
        if abs(width) > WIDEST:
            raise PassedOn("format")
        fields.append(field._replace(width=width))
    if len({field.header for field in fields}) < len(fields):  # the width of the last one is that of all
        raise PassedOn("format")
    return tuple(fields)


def _read_time(text: str, now_s: int) -> int | None:
    """Return a time as seconds since 1970, None for none."""
    if not text or text == "now":
        return now_s if text else None
    if match := _NOW.fullmatch(text):
        delta_s = int(match[2]) * _UNIT_S[match[3]]
        return now_s + (delta_s if match[1] == "+" else -delta_s)
    if text in {"today", "midnight"}:
        there = time.localtime(now_s)
        return _instant(there.tm_year, there.tm_mon, there.tm_mday)
    if match := _DAY.fullmatch(text):
        return _instant(*(int(part or 0) for part in match.groups()))
    raise PassedOn("time")


def _instant(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> int:
    told = (year, month, day, hour, minute, second)
    try:
        instant = time.mktime((*told, 0, 0, -1))
    except (OverflowError, ValueError):
        raise PassedOn("time") from None
    if time.localtime(instant)[:6] != told:  # there is no such day, or the clocks were put on in that hour
        raise PassedOn("time")
    return int(instant)

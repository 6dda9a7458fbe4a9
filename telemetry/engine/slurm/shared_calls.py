"""Command lines of `squeue` and `sacct` that one host may run for many: read strictly, and held to one user's jobs.

What is run is put together anew from what was read: each value behind the name of its option, and always `--user`.
What cannot be held to the user's own jobs is refused: steps and JSON of `squeue` (22.05 prints everybody's, whatever is
asked for), YAML, other clusters, files, and options that are not on the list. JSON of `sacct` goes by `--jobs` alone in
22.05, never by `--user`: without jobs it is refused, and with them what was printed must be looked at.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from telemetry.engine.slurm.printing.errors import PassedOn

LONGEST: Final = 1000  # letters of one value
_JOB: Final = re.compile(r"([1-9]\d{0,9})(?:_\d{1,7}|_\[[\d,-]{1,100}\]|\+\d{1,4})?(?:\.\w{1,20})?", re.ASCII)
# A width that nobody reads: 22.05's squeue is killed by its own stack where it is asked for a thousand million letters.
_WIDE: Final = re.compile(r"\d{5}", re.ASCII)
_FLAGS: Final = {
    "squeue": {
        "h": "noheader", "a": "all", "l": "long", "r": "array", "P": "priority",
        "": "array-unique noconvert start me local",
    },
    "sacct": {
        "X": "allocations", "P": "parsable2", "p": "parsable", "n": "noheader", "D": "duplicates", "b": "brief",
        "l": "long", "": "json noconvert truncate local",
    },
}  # fmt: skip
_VALUED: Final = {
    "squeue": {
        "u": "user", "A": "account", "p": "partition", "t": "states", "n": "name", "o": "format", "O": "Format",
        "S": "sort", "q": "qos", "j": "jobs",
    },
    "sacct": {
        "u": "user", "A": "accounts", "r": "partition", "s": "state", "o": "format", "S": "starttime",
        "E": "endtime", "q": "qos", "j": "jobs", "": "name units delimiter",
    },
}  # fmt: skip
_ALSO: Final = {"users": "user", "job": "jobs", "uid": "user", "account": "accounts"}
_OPTIONAL: Final = {"squeue": "jobs", "sacct": ""}  # its value need not stand behind it
PROGRAMS: Final = tuple(_FLAGS)


@dataclass(frozen=True)
class SharedCall:
    """A command that may be run for whoever has the login names it is held to, if all `jobs` are theirs.

    `users` are those of whom alone its JSON may tell, where it prints JSON.
    """

    command: tuple[str, ...]
    jobs: frozenset[int]
    users: frozenset[str] = frozenset()

    def may_show(self, printed: bytes) -> bool:
        """Say whether what the command printed tells of its users' jobs alone."""
        if not self.users:
            return True
        try:
            return {job["user"] for job in json.loads(printed)["jobs"]} <= self.users
        except (ValueError, KeyError, TypeError, RecursionError):
            return False


def read_shared_call(program: str, arguments: Sequence[str], *, login: str, logins: Collection[str]) -> SharedCall:
    """Read a command line of the user `login`, who may see the jobs of `logins`. Errors: `PassedOn`."""
    if program not in PROGRAMS or login not in logins:
        raise PassedOn("other_user")
    flags, values = _read(program, arguments)
    users = values.pop("user", "")
    jobs = values.get("jobs", "")
    if program == "squeue" and not (users or jobs or "me" in flags):
        raise PassedOn("all_users")
    if "json" in flags and not jobs:
        raise PassedOn("all_users")
    wanted = users.split(",") if users else sorted(logins) if program == "squeue" and "me" not in flags else [login]
    if not set(wanted) <= set(logins) or (users and "me" in flags):
        raise PassedOn("other_user")
    matches = [_JOB.fullmatch(each) for each in jobs.split(",")] if jobs else []
    if not all(matches):
        raise PassedOn("job_id")
    # One login name alone is the user's own: with --me it would be whoever runs it.
    command = (
        program, *(f"--{flag}" for flag in sorted(flags - {"me"})),
        *(f"--{name}={value}" for name, value in sorted(values.items())), f"--user={','.join(wanted)}",
    )  # fmt: skip
    users_told = frozenset(wanted if "json" in flags else ())
    return SharedCall(command, frozenset(int(match[1]) for match in matches if match), users_told)


def _read(program: str, arguments: Sequence[str]) -> tuple[set[str], dict[str, str]]:
    flags: set[str] = set()
    values: dict[str, str] = {}
    left, rest, waits = list(arguments), [], False
    while left:
        word = left.pop(0)
        if word in {"-", "--"}:
            raise PassedOn("option")
        if word.startswith("--"):
            waits |= _read_long(program, word[2:], left, flags, values)
        elif word.startswith("-"):
            waits |= _read_letters(program, word[1:], left, flags, values)
        else:
            rest.append(word)
    if waits and len(rest) == 1:
        _set(values, _OPTIONAL[program], rest.pop())
        waits = False
    if rest or waits:
        raise PassedOn("option")
    return flags, values


def _read_long(program: str, text: str, left: list[str], flags: set[str], values: dict[str, str]) -> bool:
    """Read a long option; say whether its value is still to come."""
    name, equals, value = text.partition("=")
    name = _name(program, name)
    if name in _names(_FLAGS[program]) and not equals:
        flags.add(name)
    elif name not in _names(_VALUED[program]):
        raise PassedOn("option")
    elif equals:
        _set(values, name, value)
    else:
        return _take(program, name, left, values)
    return False


def _read_letters(program: str, text: str, left: list[str], flags: set[str], values: dict[str, str]) -> bool:
    """Read short options that stand together; say whether the value of the last is still to come."""
    for at, letter in enumerate(text):
        rest = text[at + 1 :]
        if letter in _FLAGS[program]:
            flags.add(_FLAGS[program][letter])
        elif letter not in _VALUED[program]:
            raise PassedOn("option")
        elif rest:
            _set(values, _VALUED[program][letter], rest)
            return False
        else:
            return _take(program, _VALUED[program][letter], left, values)
    return False


def _take(program: str, name: str, left: list[str], values: dict[str, str]) -> bool:
    """Take the next word for a value; say whether it may stand anywhere, and so is still to come."""
    if name == _OPTIONAL[program]:
        return True
    if not left:
        raise PassedOn("option")
    _set(values, name, left.pop(0))
    return False


def _name(program: str, name: str) -> str:
    also = _ALSO.get(name, name)
    return also if also in _names(_VALUED[program]) else name


def _names(table: dict[str, str]) -> set[str]:
    return {name for key, names in table.items() for name in (names.split() if not key else [names])}


def _set(values: dict[str, str], name: str, value: str) -> None:
    if name in values or not value or len(value) > LONGEST or "\0" in value:
        raise PassedOn("option")
    if name in {"format", "Format"} and ("%all" in value.lower() or _WIDE.search(value)):
        raise PassedOn("format")
    values[name] = value

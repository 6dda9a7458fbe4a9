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
from telemetry.engine.slurm.printing.options import Grammar, read_jobs, read_options

LONGEST: Final = 1000  # letters of one value
# A width that nobody reads: 22.05's squeue is killed by its own stack where it is asked for a thousand million letters.
_WIDE: Final = re.compile(r"\d{5}", re.ASCII)
_GRAMMARS: Final = {
    "squeue": Grammar(
        flags={"h": "noheader", "a": "all", "l": "long", "r": "array", "P": "priority"},
        valued={
            "u": "user", "A": "account", "p": "partition", "t": "states", "n": "name", "o": "format", "O": "Format",
            "S": "sort", "q": "qos", "j": "jobs",
        },
        more_flags=frozenset({"array-unique", "noconvert", "start", "me", "local"}),
        also={"users": "user", "job": "jobs"}, anywhere="jobs",
    ),
    "sacct": Grammar(
        flags={
            "X": "allocations", "P": "parsable2", "p": "parsable", "n": "noheader", "D": "duplicates", "b": "brief",
            "l": "long",
        },
        valued={
            "u": "user", "A": "accounts", "r": "partition", "s": "state", "o": "format", "S": "starttime",
            "E": "endtime", "q": "qos", "j": "jobs",
        },
        more_flags=frozenset({"json", "noconvert", "truncate", "local"}),
        more_valued=frozenset({"name", "units", "delimiter"}), also={"uid": "user", "account": "accounts"},
    ),
}  # fmt: skip
PROGRAMS: Final = tuple(_GRAMMARS)


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
    options = read_options(_GRAMMARS[program], arguments)
    flags, values = options.flags, options.values
    for name, value in values.items():
        _require_short(name, value)
    users = values.pop("user", "")
    jobs = values.get("jobs", "")
    if program == "squeue" and not (users or jobs or "me" in flags):
        raise PassedOn("all_users")
    if "json" in flags and not jobs:
        raise PassedOn("all_users")
    wanted = users.split(",") if users else sorted(logins) if program == "squeue" and "me" not in flags else [login]
    if not set(wanted) <= set(logins) or (users and "me" in flags):
        raise PassedOn("other_user")
    asked = read_jobs(jobs)
    # One login name alone is the user's own: with --me it would be whoever runs it.
    command = (
        program, *(f"--{flag}" for flag in sorted(flags - {"me"})),
        *(f"--{name}={value}" for name, value in sorted(values.items())), f"--user={','.join(wanted)}",
    )  # fmt: skip
    users_told = frozenset(wanted if "json" in flags else ())
    return SharedCall(command, frozenset(each.job for each in asked), users_told)


def _require_short(name: str, value: str) -> None:
    if len(value) > LONGEST:
        raise PassedOn("option")
    if name in {"format", "Format"} and ("%all" in value.lower() or _WIDE.search(value)):
        raise PassedOn("format")

"""What a command line of `squeue` asks for, read strictly: an option that is not on the list is the real command's.

Sources: squeue(1), getopt(3): options may stand in any order, short ones together, and the ids of `-j` apart from it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.layout import DEFAULT, Layout, read_long, read_short

FLAGS: Final = {"h": "noheader", "a": "all"}
VALUED: Final = {
    "u": "user", "A": "account", "p": "partition", "t": "states", "n": "name", "o": "format", "O": "Format",
}  # fmt: skip
_LONG_FLAGS: Final = frozenset({"noheader", "all", "me"})
_LONG_VALUED: Final = {**{name: name for name in VALUED.values()}, "users": "user"}
_JOB: Final = re.compile(r"([1-9]\d{0,9})(?:_(\d{1,7}))?", re.ASCII)
# What makes squeue print otherwise, where it stands in the environment.
_CHANGING: Final = ("SQUEUE_", "SLURM_CLUSTERS", "SLURM_BITSTR", "SLURM_TIME_FORMAT")
# The states that squeue names without doubt about what stands behind the name (squeue(1), "JOB STATE CODES").
STATES: Final = {
    "PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "CD": "COMPLETED", "CA": "CANCELLED", "F": "FAILED",
    "TO": "TIMEOUT", "NF": "NODE_FAIL", "PR": "PREEMPTED", "BF": "BOOT_FAIL", "DL": "DEADLINE",
    "OOM": "OUT_OF_MEMORY", "CG": "COMPLETING", "CF": "CONFIGURING",
}  # fmt: skip
_LONG_STATES: Final = {long: short for short, long in STATES.items()}


@dataclass(frozen=True)
class Asked:
    """What is asked for. An empty list of anything asks for all; so does `states` of None for what stands in the queue.

    `jobs` are ids with the number of a task, or None; `states` compact ones, `ALL` for each.
    """

    layout: Layout
    has_header: bool = True
    me: bool = False
    users: tuple[str, ...] = ()
    jobs: tuple[tuple[int, int | None], ...] = ()
    accounts: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    states: frozenset[str] | None = None
    wants_hidden: bool = False


ALL: Final = frozenset({"ALL"})


@dataclass
class _Words:
    flags: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)

    def set(self, name: str, value: str) -> None:
        if name in self.values:
            raise PassedOn("option")
        self.values[name] = value


def read_squeue_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> Asked:
    """Read a command line and what the environment adds to it. Errors: `PassedOn`."""
    for name, value in environment.items():
        if name.startswith(_CHANGING) and not (name == "SLURM_TIME_FORMAT" and value == "standard"):
            raise PassedOn("environment")
    words = _split(arguments)
    values = words.values
    if {"format", "Format"} <= values.keys() or ("user" in values and "me" in words.flags):
        raise PassedOn("option")
    layout = read_long(values["Format"]) if "Format" in values else read_short(values.get("format", DEFAULT))
    states = _states(values["states"]) if "states" in values else None
    return Asked(
        layout=layout, has_header="noheader" not in words.flags, me="me" in words.flags,
        users=_names(values, "user"), jobs=_jobs(words), accounts=_names(values, "account"),
        partitions=_names(values, "partition"), names=_names(values, "name"), states=states,
        wants_hidden="all" in words.flags or bool(values.keys() & {"partition", "jobs"}),
    )  # fmt: skip


def _split(arguments: Sequence[str]) -> _Words:
    words, left = _Words(), list(arguments)
    while left:
        word = left.pop(0)
        if word == "--" or "\0" in word:
            raise PassedOn("option")
        if word.startswith("--"):
            _read_long_option(words, word[2:], left)
        elif word.startswith("-") and word != "-":
            _read_short_options(words, word[1:], left)
        else:
            words.rest.append(word)
    return words


def _read_long_option(words: _Words, text: str, left: list[str]) -> None:
    name, equals, value = text.partition("=")
    if name in {"jobs", "job"}:
        words.set("jobs", value) if equals else words.flags.add("jobs")
    elif name in _LONG_FLAGS and not equals:
        words.flags.add(name)
    elif name in _LONG_VALUED and (equals or left):
        words.set(_LONG_VALUED[name], value if equals else left.pop(0))
    else:
        raise PassedOn("option")


def _read_short_options(words: _Words, text: str, left: list[str]) -> None:
    for at, letter in enumerate(text):
        rest = text[at + 1 :]
        if letter in FLAGS:
            words.flags.add(FLAGS[letter])
        elif letter == "j":  # its value stands right behind it, or anywhere
            words.set("jobs", rest) if rest else words.flags.add("jobs")
            return
        elif letter in VALUED and (rest or left):
            words.set(VALUED[letter], rest or left.pop(0))
            return
        else:
            raise PassedOn("option")


def _jobs(words: _Words) -> tuple[tuple[int, int | None], ...]:
    text, rest = words.values.get("jobs"), words.rest
    if "jobs" in words.flags:
        if text is not None or len(rest) != 1:
            raise PassedOn("option")
        text, rest = rest[0], []
        words.values["jobs"] = text
    if rest:
        raise PassedOn("option")
    if text is None:
        return ()
    matches = [_JOB.fullmatch(each) for each in text.split(",")]
    if not all(matches):
        raise PassedOn("job_id")
    return tuple((int(match[1]), int(match[2]) if match[2] else None) for match in matches if match)


def _names(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    if name not in values:
        return ()
    names = tuple(values[name].split(","))
    if not all(names):
        raise PassedOn("option")
    return names


def _states(text: str) -> frozenset[str]:
    if text.lower() == "all":
        return ALL
    words = [word.upper() for word in text.split(",")]
    if not all(word in STATES or word in _LONG_STATES for word in words):
        raise PassedOn("state")
    return frozenset(_LONG_STATES.get(word, word) for word in words)

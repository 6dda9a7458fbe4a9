"""Command lines of Slurm's commands and the job ids in them, read strictly: what is not on the list is `PassedOn`.

Source: getopt_long(3): options may stand in any order, short ones together, a value in the same word or in the next.
Names that are cut short, which getopt completes, are left to the command itself.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from telemetry.engine.slurm.printing.errors import PassedOn

_JOB: Final = re.compile(r"([1-9]\d{0,9})(?:_(\d{1,7}))?(_\[[\d,-]{1,100}\]|\+\d{1,4})?(\.\w{1,20})?", re.ASCII)


@dataclass(frozen=True)
class Grammar:
    """The options of a command: letters with the names they stand for, and names that have no letter.

    `also` are other names of the same. The value of `anywhere` may stand as the only word that belongs to no option.
    """

    flags: Mapping[str, str]
    valued: Mapping[str, str]
    more_flags: frozenset[str] = frozenset()
    more_valued: frozenset[str] = frozenset()
    also: Mapping[str, str] = field(default_factory=dict)
    anywhere: str = ""

    def is_flag(self, name: str) -> bool:
        """Say whether a long option takes no value."""
        return name in self.more_flags or name in self.flags.values()

    def is_valued(self, name: str) -> bool:
        """Say whether a long option takes a value."""
        return name in self.more_valued or name in self.valued.values()


class AskedJob(NamedTuple):
    """A job that is asked about; `rest` is whatever else is said of it: a range of tasks, a component, a step."""

    job: int
    task: int | None = None
    rest: str = ""


@dataclass
class Options:
    """What a command line sets: names of flags, and values by name."""

    grammar: Grammar
    flags: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    waits: bool = False  # the value that may stand anywhere is still to come
    rest: list[str] = field(default_factory=list)

    def set(self, name: str, value: str) -> None:
        """Set a value, once. Errors: `PassedOn`."""
        if name in self.values or not value:
            raise PassedOn("option")
        self.values[name] = value

    def take(self, name: str, left: list[str]) -> None:
        """Set a value to the next word, or wait for it where it may stand anywhere. Errors: `PassedOn`."""
        if name == self.grammar.anywhere:
            self.waits = True
        elif left:
            self.set(name, left.pop(0))
        else:
            raise PassedOn("option")


def read_options(grammar: Grammar, arguments: Sequence[str]) -> Options:
    """Read a command line. Errors: `PassedOn` for an option that is not known, is given twice or lacks its value."""
    options, left = Options(grammar), list(arguments)
    while left:
        word = left.pop(0)
        if word in {"-", "--"} or "\0" in word:
            raise PassedOn("option")
        if word.startswith("--"):
            _read_long(options, word[2:], left)
        elif word.startswith("-"):
            _read_letters(options, word[1:], left)
        else:
            options.rest.append(word)
    if options.waits and len(options.rest) == 1:
        options.set(grammar.anywhere, options.rest.pop())
        options.waits = False
    if options.rest or options.waits:
        raise PassedOn("option")
    return options


def _read_long(options: Options, text: str, left: list[str]) -> None:
    name, equals, value = text.partition("=")
    name = options.grammar.also.get(name, name)
    if options.grammar.is_flag(name) and not equals:
        options.flags.add(name)
    elif not options.grammar.is_valued(name):
        raise PassedOn("option")
    elif equals:
        options.set(name, value)
    else:
        options.take(name, left)


def _read_letters(options: Options, text: str, left: list[str]) -> None:
    grammar = options.grammar
    for at, letter in enumerate(text):
        rest = text[at + 1 :]
        if letter in grammar.flags:
            options.flags.add(grammar.flags[letter])
        elif letter not in grammar.valued:
            raise PassedOn("option")
        elif rest:
            options.set(grammar.valued[letter], rest)
            return
        else:
            options.take(grammar.valued[letter], left)
            return


def read_jobs(text: str) -> tuple[AskedJob, ...]:
    """Read job ids divided by commas, "" for none: `7`, `7_1`, `7_[1-3]`, `7+1`, `7.batch`. Errors: `PassedOn`."""
    matches = [_JOB.fullmatch(each) for each in text.split(",")] if text else []
    if not all(matches):
        raise PassedOn("job_id")
    return tuple(
        AskedJob(int(match[1]), int(match[2]) if match[2] else None, (match[3] or "") + (match[4] or ""))
        for match in matches if match
    )  # fmt: skip


def read_plain_jobs(text: str) -> tuple[AskedJob, ...]:
    """Read ids of jobs and of single tasks. Errors: `PassedOn` for what is more than that."""
    jobs = read_jobs(text)
    if any(job.rest for job in jobs):
        raise PassedOn("job_id")
    return jobs

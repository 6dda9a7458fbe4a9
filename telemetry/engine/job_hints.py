"""What an event of a job says beyond its state, so that nobody has to ask: where its output is, what usually helps.

Nothing is guessed. A path is told where Slurm told it (sacct's StdOut and StdErr, from 24.11; squeue's) or where the
command line of the submission names it, which goes before `#SBATCH` lines (sbatch(1)); patterns are put in where they
are sure.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from posixpath import join
from typing import Final, NamedTuple

from telemetry.engine.reasons import explain_reason
from telemetry.engine.slurm.records import JobRecord
from telemetry.engine.slurm.values import FAILED_STATES

LONGEST: Final = 500
_OPTIONS: Final = {"-o": "stdout", "--output": "stdout", "-e": "stderr", "--error": "stderr"}
_PATTERN: Final = re.compile(r"%(.?)")
_REDACTED: Final = "[REDACTED"
# Why a job will never start as it is (slurm.conf EnforcePartLimits=NO lets it wait for ever).
_HOPELESS: Final = {
    "PartitionTimeLimit": "It will not start as it is: ask for less time (--time), or another partition.",
    "PartitionNodeLimit": "It will not start as it is: ask for fewer nodes (--nodes), or another partition.",
    "BadConstraints": "It will not start as it is: no node fits --constraint and what else it asks for.",
    "DependencyNeverSatisfied": "It will not start: cancel it, and submit it again once what it depends on is right.",
    "InvalidQOS": "It will not start under this QoS: choose one that its account may use (--qos).",
    "InvalidAccount": "It will not start under this account: choose one that you may use (--account).",
}


class Outputs(NamedTuple):
    """Where a job writes; "" where that is not sure."""

    stdout: str
    stderr: str


_NOWHERE: Final = Outputs("", "")


def find_outputs(record: JobRecord, seen: Outputs = _NOWHERE) -> Outputs:
    """Return where a job writes its output and errors; `seen`: as the queue named it, patterns in it."""
    told = {name.lower(): path for name, path in record.extra.items()}
    named = _named_in(record.submit_line)
    stdout = _expand(told.get("stdout") or seen.stdout or named.get("stdout", ""), record)
    stderr = _expand(told.get("stderr") or seen.stderr or named.get("stderr", ""), record)
    return Outputs(stdout, stderr)


def _named_in(line: str) -> Mapping[str, str]:
    """Return the paths that a submission's own options name, each the last time it does."""
    try:
        words = shlex.split(line)
    except ValueError:  # an open quotation mark
        return {}
    if not words or words[0].rpartition("/")[2] != "sbatch":
        return {}
    return dict(_options(words[1:]))


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word in _OPTIONS:
            if place + 1 < len(words):
                yield _OPTIONS[word], words[place + 1]
        elif equals and name.startswith("--") and name in _OPTIONS:
            yield _OPTIONS[name], value
        elif word[:2] in _OPTIONS and not word.startswith("--"):
            yield _OPTIONS[word[:2]], word[2:].removeprefix("=")
        elif not word.startswith("-") and place and not words[place - 1].startswith("-"):
            return  # the script: what follows are its own arguments


def _expand(path: str, record: JobRecord) -> str:
    """Put the job's numbers into a path; "" where it holds another pattern, or its folder is not known."""
    if not path or _REDACTED in path or "\\" in path:
        return ""
    known = {"j": str(record.raw_job_id), "A": str(record.array_job_id or record.raw_job_id), "%": "%"}
    if record.array_task is not None:
        known["a"] = str(record.array_task)
    if any(letter not in known for letter in _PATTERN.findall(path)):
        return ""
    told = _PATTERN.sub(lambda match: known[match[1]], path)
    whole = told if told.startswith("/") else join(record.work_dir, told) if record.work_dir else ""
    return whole if len(whole) <= LONGEST else ""


def hint_for(record: JobRecord) -> str:
    """Say what usually helps a job in this state; "" where we know of nothing."""
    if record.state == "OUT_OF_MEMORY":
        had = f"It had {_size(record.mem_bytes)}. " if record.mem_bytes else ""
        return f"{had}Ask for more memory (--mem): the same amount ends the same way."
    if record.state == "TIMEOUT":
        had = f"It had {_span(record.timelimit_s)}. " if record.timelimit_s else ""
        return f"{had}Ask for more time (--time), or let it write and read checkpoints."
    if record.state in ("NODE_FAIL", "BOOT_FAIL"):
        return "This was the machine, not the job: submit it again."
    if record.state in FAILED_STATES:
        return _of_failure(record)
    return _HOPELESS.get(record.reason.strip("()"), "") if record.state == "PENDING" else ""


def _of_failure(record: JobRecord) -> str:
    if not record.started:
        return "It never had a node: Slurm refused what it asks for. Try the same options with sbatch --test-only."
    if record.exit_code == 127:  # POSIX, Shell Command Language, 2.8.2
        return "A command was not found: see its errors; are its modules loaded in the script?"
    if record.exit_code == 126:
        return "A command could not be run: is it executable?"
    return ""


def waits_for(record: JobRecord) -> str:
    """Say in plain words why a job waits; "" for one that does not."""
    return explain_reason(record.reason) if record.state == "PENDING" and record.reason else ""


def _size(size: int) -> str:
    for factor, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"


def _span(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes} min" if hours and minutes else f"{hours} h" if hours else f"{minutes} min"

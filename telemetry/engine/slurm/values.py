"""Typed values as Slurm prints them: durations, times, sizes, TRES lists, states, exit codes.

Every parser is strict and total: it returns the value or raises FieldError with a stable code, and never
accepts a newline, so that a parser can also serve as the test whether a field is well formed. Results of
values that repeat from row to row are cached.

Sources: the man pages sacct(1) and squeue(1); Slurm's `src/common/slurm_protocol_defs.c` for the states.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from telemetry.engine.slurm.errors import FieldError

UNSET_TIMES = frozenset({"", "Unknown", "None", "N/A"})
UNSET_DURATIONS = frozenset({"", "UNLIMITED", "Partition_Limit", "INVALID", "Unknown", "None", "NOT_SET"})

# Slurm marks "memory per CPU" in the top bit of an unsigned number of MiB. Releases that forgot to mask it
# print the mark as part of the number, so a size from here on is no size at all.
MEMORY_MARK_MIB = 2**31

_words = str.split
_EPOCH = datetime(1970, 1, 1)  # without zone, like the texts: both are UTC by contract
_DURATION = re.compile(r"(?:([0-9]{1,8})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{2})(?:\.[0-9]{1,6})?")
_MEMORY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)([KMGTPE]?)i?B?([nc]?)")
_NO_MEMORY = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,6})?\?[nc]?")
_COUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGTP])")
_EXIT = re.compile(r"([0-9]{1,10}):([0-9]{1,10})")
_CANCELLED_BY = re.compile(r"CANCELLED by ([0-9]{1,10})")
_CUT_CANCELLED_BY = re.compile(r"CANCELLED (?:b(?:y(?: [0-9]*)?)?)?\+")
_TRES_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_/:.+-]*")
_BINARY = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_DECIMAL = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}

STATES = frozenset(
    _words(
        "BOOT_FAIL CANCELLED COMPLETED COMPLETING CONFIGURING DEADLINE EXPEDITING FAILED LAUNCH_FAILED "
        "NODE_FAIL OUT_OF_MEMORY PENDING POWER_UP_NODE PREEMPTED RECONFIG_FAIL REQUEUED REQUEUE_FED "
        "REQUEUE_HOLD RESIZING RESV_DEL_HOLD REVOKED RUNNING SIGNALING SPECIAL_EXIT STAGE_OUT STOPPED "
        "SUSPENDED TIMEOUT"
    )
)
ENDED_STATES = frozenset(
    _words(
        "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED REVOKED TIMEOUT"
    )
)
# Those that ended badly by themselves: neither cancelled nor at their time limit.
FAILED_STATES = ("FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE")
# Records that closed one stretch of a job that goes on elsewhere: they hold usage and an end, but the job
# itself has not ended.
CLOSED_STRETCH_STATES = frozenset({"REQUEUED", "RESIZING"})


class MemorySize(NamedTuple):
    """A requested size: `size_bytes` per `per` ('job', 'node' or 'cpu'); None with `overflow` if garbage."""

    size_bytes: int | None
    per: str
    overflow: bool


class Tres(NamedTuple):
    """Trackable resources of one list; a count that is not in the list is None (gpus: 0)."""

    cpus: int | None
    nodes: int | None
    mem_bytes: int | None
    gpus: int
    gpu_types: tuple[str, ...]


class State(NamedTuple):
    """A base state and, for CANCELLED, the uid of who did it."""

    name: str
    cancelled_by_uid: int | None


def parse_time(text: str) -> int | None:
    """Read a time as UTC epoch seconds; None where Slurm knows none.

    Accepts ISO without zone (`sacct` run with TZ=UTC) and epoch seconds (SLURM_TIME_FORMAT=%s; 0 is unset).
    Raises FieldError `bad_time`.
    """
    if len(text) == 19 and text[10] == "T":
        try:
            passed = datetime.fromisoformat(text) - _EPOCH
        except (ValueError, TypeError) as error:  # the latter of one with a zone, as 2026-07-01T10+02:00
            raise FieldError("bad_time", f"{text!r} is not a time") from error
        return passed.days * 86400 + passed.seconds
    if text in UNSET_TIMES:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 11:
        return int(text) or None
    raise FieldError("bad_time", f"{text[:60]!r} is not a time")


@lru_cache(maxsize=16384)
def parse_duration(text: str) -> int | None:
    """Read `[D-][HH:]MM:SS[.mmm]` as whole seconds (fractions dropped); None for no limit or no value.

    Days may pass 31. Raises FieldError `bad_duration`.
    """
    if text in UNSET_DURATIONS:
        return None
    match = _DURATION.fullmatch(text)
    if match is None or (match[1] and not match[2]):
        raise FieldError("bad_duration", f"{text[:60]!r} is not a duration")
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)


@lru_cache(maxsize=4096)
def parse_memory(text: str) -> MemorySize:
    """Read a size such as `31000Mn`, `3000Mc`, `62.50G` (binary units, MiB where none is written).

    A number with Slurm's per-CPU mark left in it (2^31 MiB and more) gives None with `overflow` set, and so does
    `16?`, which sacct 22.05 prints for a record of which only the end is known. Raises FieldError `bad_memory`.
    """
    if text in ("", "?"):
        return MemorySize(None, "job", False)
    if _NO_MEMORY.fullmatch(text):
        return MemorySize(None, "job", True)
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise FieldError("bad_memory", f"{text[:60]!r} is not a memory size")
    per = {"n": "node", "c": "cpu", "": "job"}[match[3]]
    size = int(float(match[1]) * _BINARY[match[2]]) if "." in match[1] else int(match[1]) * _BINARY[match[2]]
    if size >= MEMORY_MARK_MIB * 2**20:
        return MemorySize(None, per, True)
    return MemorySize(size, per, False)


@lru_cache(maxsize=4096)
def parse_count(text: str) -> int | None:
    """Read a count, also with a decimal suffix (`1.5K`); None when empty. Raises FieldError `bad_count`."""
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    match = _COUNT.fullmatch(text)
    if match is None:
        raise FieldError("bad_count", f"{text[:60]!r} is not a count")
    return round(float(match[1]) * _DECIMAL[match[2]])


@lru_cache(maxsize=16384)
def parse_tres(text: str) -> Tres:
    """Read a TRES list such as `billing=64,cpu=64,gres/gpu:a100=4,gres/gpu=4,mem=62.50G,node=8`.

    GPUs are `gres/gpu=N` where it is present, else the sum of the typed entries.
    Raises FieldError `bad_tres`.
    """
    if not text:
        return Tres(None, None, None, 0, ())
    if "\n" in text:
        raise FieldError("bad_tres", "a list of trackable resources stands on one line")
    values: dict[str, str] = {}
    for item in text.split(","):
        name, equals, value = item.partition("=")
        if not equals or not value or not _TRES_NAME.fullmatch(name):
            raise FieldError("bad_tres", f"{item[:60]!r} is not a trackable resource")
        values[name] = value
    try:
        return _tres_of(values)
    except FieldError as error:
        raise FieldError("bad_tres", error.detail) from error


def _tres_of(values: dict[str, str]) -> Tres:
    typed = {n.removeprefix("gres/gpu:"): parse_count(v) for n, v in values.items() if n.startswith("gres/gpu:")}
    total = parse_count(values.get("gres/gpu", ""))
    for name, value in values.items():
        if name in ("billing", "energy"):
            parse_count(value.removeprefix("-"))  # energy is -2 on nodes that cannot measure it
    return Tres(
        cpus=parse_count(values.get("cpu", "")),
        nodes=parse_count(values.get("node", "")),
        mem_bytes=parse_memory(values.get("mem", "")).size_bytes,
        gpus=total if total is not None else sum(count or 0 for count in typed.values()),
        gpu_types=tuple(sorted(typed)),
    )


@lru_cache(maxsize=8192)
def parse_state(text: str) -> State:
    """Read a job state, `CANCELLED by UID` and forms cut by a narrow column (`CANCELLED+`).

    Raises FieldError `unknown_state`; a cut form that fits several states is unknown.
    """
    if text in STATES:
        return State(text, None)
    match = _CANCELLED_BY.fullmatch(text)
    if match is not None:
        return State("CANCELLED", int(match[1]))
    if text.endswith("+") and len(text) > 2:
        fits = [state for state in STATES if state.startswith(text[:-1])]
        if len(fits) == 1 or _CUT_CANCELLED_BY.fullmatch(text):
            return State(fits[0] if fits else "CANCELLED", None)
    raise FieldError("unknown_state", f"{text[:60]!r} is not a Slurm job state")


@lru_cache(maxsize=4096)
def parse_exit_code(text: str) -> tuple[int, int]:
    """Read `code:signal`; (0, 0) when empty. Raises FieldError `bad_exit_code`."""
    if not text:
        return (0, 0)
    match = _EXIT.fullmatch(text)
    if match is None:
        raise FieldError("bad_exit_code", f"{text[:60]!r} is not an exit code")
    return (int(match[1]), int(match[2]))

"""What each column of `sacct` holds, and the plan compiled from one header line.

A column is *free* when people (or we know not who) write its text: it may hold `|` and newlines. Every other
column is typed: a check says whether a text can stand in it. Columns of unknown name are free.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from telemetry.engine.slurm.errors import FieldError, FormatError
from telemetry.engine.slurm.job_ids import parse_job_id
from telemetry.engine.slurm.values import (
    parse_count,
    parse_duration,
    parse_exit_code,
    parse_memory,
    parse_state,
    parse_time,
    parse_tres,
)

Check = Callable[[str], object]
_words = str.split

FREE = frozenset(
    _words(
        "jobname comment admincomment systemcomment submitline workdir extra stdin stdout stderr "
        "container constraints licenses wckey"
    )
)
# Names that people choose or Slurm composes, of which only this is sure: they hold no newline.
WORDS = frozenset(
    _words(
        "account avecpufreq avediskread avediskwrite avepages averss avevmsize blockid cluster "
        "consumedenergy failednode flags group layout maxdiskread maxdiskreadnode maxdiskreadtask "
        "maxdiskwrite maxdiskwritenode maxdiskwritetask maxpages maxpagesnode maxpagestask maxrss "
        "maxrssnode maxrsstask maxvmsize maxvmsizenode maxvmsizetask mcslabel mincpunode mincputask "
        "nodelist partition qos qosreq reason reqcpufreq reqcpufreqgov reqcpufreqmax reqcpufreqmin "
        "reqreservation reservation sluid segmentsize user tresusageinave tresusageinmax "
        "tresusageinmaxnode tresusageinmaxtask tresusageinmin tresusageinminnode tresusageinmintask "
        "tresusageintot tresusageoutave tresusageoutmax tresusageoutmaxnode tresusageoutmaxtask "
        "tresusageoutmin tresusageoutminnode tresusageoutmintask tresusageouttot associd avecpu "
        "cputimeraw dbindex mincpu ntasks plannedcpuraw priority resvcpuraw timelimitraw"
    )
)
STRONG: dict[str, Check] = {
    **dict.fromkeys(_words("jobid jobidraw"), parse_job_id),
    **dict.fromkeys(_words("submit eligible start end"), parse_time),
    **dict.fromkeys(
        _words("elapsed timelimit cputime totalcpu usercpu systemcpu suspended reserved planned resvcpu plannedcpu"),
        parse_duration,
    ),
    **dict.fromkeys(_words("exitcode derivedexitcode"), parse_exit_code),
    **dict.fromkeys(_words("alloctres reqtres"), parse_tres),
    **dict.fromkeys(
        _words("allocnodes nnodes reqnodes alloccpus ncpus reqcpus uid gid elapsedraw restarts"),
        parse_count,
    ),
    "reqmem": parse_memory,
    "state": parse_state,
}
# Never empty in any row, of a job or a step: what makes a split certain between two free columns.
FILLED = frozenset(_words("jobid jobidraw state submit start end elapsed exitcode"))
COMMAND = (
    "TZ=UTC sacct -a -D -P -S now-1days --format="
    "JobID,JobIDRaw,User,JobName,Account,Group,Cluster,Partition,QOS,Eligible,Start,AdminComment,End,Elapsed,Timelimit,"
    "Comment,Submit,NNodes,NCPUS,ReqCPUS,ReqMem,AllocTRES,ReqTRES,NodeList,UID,WorkDir,State,SubmitLine,ExitCode"
)
MAX_EXTRA_SEPARATORS = 2000
XDMOD_WIDTH = 26
XDMOD_REMEDY = (
    "The first line is a record, not a header, in the 26 columns that Open XDMoD's xdmod-slurm-helper writes: if it "
    "made this file, read it with --format xdmod."
)
_ISO_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def _check_word(text: str) -> None:
    if "\n" in text or "\ufffd" in text:
        code = "invalid_utf8" if "\ufffd" in text else "bad_word"
        raise FieldError(code, f"{text[:60]!r} cannot stand here")


def _filled(parse: Check) -> Check:
    def check(text: str) -> object:
        if not text:
            raise FieldError("empty_value", "there is no value")
        return parse(text)

    return check


def _check_empty(text: str) -> None:
    if text:
        raise FieldError("bad_word", f"{text[:60]!r} stands behind the last column")


@dataclass(frozen=True, slots=True)
class Plan:
    """One header line, compiled: where each known column is, what checks each, where the free ones are.

    `checks[i]` is None for a free column. `blocks` are the runs of typed columns before, between and behind
    the free columns: `(first column, behind the last one)`. `strong` are the columns whose type says a lot.
    """

    names: tuple[str, ...]
    index: dict[str, int]
    checks: tuple[Check | None, ...]
    blocks: tuple[tuple[int, int], ...]
    strong: tuple[int, ...]

    @property
    def width(self) -> int:
        """Count the columns."""
        return len(self.names)


def resembles_xdmod(values: Sequence[str]) -> bool:
    """Say whether a first line is a record of the 26 columns, not a header: ids and the submission in their places."""
    if len(values) < XDMOD_WIDTH:  # more where the job's name, which comes last, holds separators
        return False
    return values[1].isdecimal() and values[9].isdecimal() and _ISO_SECOND.fullmatch(values[10]) is not None


def compile_plan(header: str) -> Plan:
    """Compile the header line of `sacct -P` (or `-p`), any columns in any order.

    Raises FormatError `missing_columns` with what is missing and a command line that gives it, or
    `duplicate_columns`.
    """
    names = tuple(name.strip() for name in header.rstrip("\r\n").split("|"))
    keys = [name.lower() for name in names]
    doubled = sorted({name for name, key in zip(names, keys, strict=True) if key and keys.count(key) > 1})
    missing = _missing(set(keys))
    if missing:
        raise FormatError(
            "missing_columns",
            f"This is not a sacct file with the columns needed: {', '.join(missing)} missing.",
            missing=missing,
            remedy=XDMOD_REMEDY if resembles_xdmod(names) else f"Make it with: {COMMAND}",
        )
    if doubled:
        raise FormatError("duplicate_columns", f"Columns named twice: {', '.join(doubled)}.")
    checks = tuple(_check_of(key) for key in keys)
    strong = tuple(i for i, key in enumerate(keys) if key in STRONG or not key)
    return Plan(names, {key: i for i, key in enumerate(keys)}, checks, _blocks(checks), strong)


def _check_of(key: str) -> Check | None:
    if not key:
        return _check_empty
    if key in STRONG:
        return _filled(STRONG[key]) if key in FILLED else STRONG[key]
    return _check_word if key in WORDS or key.endswith("raw") or key.endswith("id") else None


def _missing(keys: set[str]) -> list[str]:
    needed = [
        ("JobIDRaw", {"jobidraw", "jobid"}),
        ("User", {"user"}),
        ("State", {"state"}),
        ("Submit", {"submit"}),
        ("Start", {"start"}),
        ("End", {"end", "elapsed", "elapsedraw"}),
    ]
    return [name for name, any_of in needed if not any_of & keys]


def _blocks(checks: Sequence[Check | None]) -> tuple[tuple[int, int], ...]:
    free = [i for i, check in enumerate(checks) if check is None]
    return tuple(zip([0, *(i + 1 for i in free)], [*free, len(checks)], strict=True))


def split_ways(plan: Plan, fields: Sequence[str]) -> tuple[int, list[str]]:
    """Find the splits of a row, cut at every `|`, that make every typed column valid.

    Returns how many there are (0, 1, or 2 for "several") and, where there is one, the column values.
    Counts ways column group by column group: after the k-th free column, `ways[shift]` is in how many ways
    `shift` separators were taken as text so far. At most groups x separators steps.
    """
    spare = len(fields) - plan.width
    free = len(plan.blocks) - 1
    if spare < 0 or spare > MAX_EXTRA_SEPARATORS or (not free and spare):
        return 0, []
    if not block_fits(plan, fields, plan.blocks[0], 0) or not block_fits(plan, fields, plan.blocks[-1], spare):
        return 0, []
    ways, steps = [1] + [0] * spare, []
    for k in range(1, free + 1):
        shifts = range(spare + 1) if k < free else (spare,)
        fits = [s for s in shifts if block_fits(plan, fields, plan.blocks[k], s)]
        if not fits:
            return 0, []
        ways, origin = _advance(ways, fits)
        steps.append(origin)
    count = ways[spare]
    return (1, _cut(plan, fields, steps)) if count == 1 else (count, [])


def _advance(ways: list[int], fits: Sequence[int]) -> tuple[list[int], list[int]]:
    """Extend the ways over one free column and the typed block behind it (counts stop at 2)."""
    after, origin, total, last, at = [0] * len(ways), [0] * len(ways), 0, 0, 0
    for shift in fits:
        while at <= shift:
            if ways[at]:
                total, last = min(2, total + ways[at]), at
            at += 1
        after[shift], origin[shift] = total, last
    return after, origin


def block_fits(plan: Plan, fields: Sequence[str], block: tuple[int, int], shift: int) -> bool:
    """Say whether a run of typed columns is valid when every value stands `shift` places further on."""
    try:
        for i in range(*block):
            plan.checks[i](fields[i + shift])  # type: ignore[misc]
    except FieldError:
        return False
    return True


def _cut(plan: Plan, fields: Sequence[str], steps: list[list[int]]) -> list[str]:
    shift = len(fields) - plan.width
    shifts = [shift]
    for origin in reversed(steps):
        shift = origin[shift]
        shifts.append(shift)
    shifts.reverse()  # shifts[k]: separators taken as text before block k
    values: list[str] = []
    for k, (first, behind) in enumerate(plan.blocks):
        if k:
            values.append("|".join(fields[first - 1 + shifts[k - 1] : first + shifts[k]]))
        values.extend(fields[first + shifts[k] : behind + shifts[k]])
    return values


def first_fault(plan: Plan, fields: Sequence[str]) -> FieldError | None:
    """Name what is wrong with the plain split of a row: the first value its column does not allow."""
    for name, check, text in zip(plan.names, plan.checks, fields, strict=False):
        try:
            if check is not None:
                check(text)
        except FieldError as error:
            return FieldError(error.code, f"Column {name}: {error.detail}.")
    return None


def resembles_record(plan: Plan, fields: Sequence[str]) -> bool:
    """Say whether a row looks like (the beginning of) a record although something in it is wrong.

    At least two columns of a telling type hold a valid, non-empty value, and for each wrong one four are
    right. The last value of a short row may be cut and says nothing.
    """
    hits = misses = 0
    judged = len(fields) - (len(fields) < plan.width)
    for i in plan.strong:
        if i < judged and fields[i]:
            try:
                plan.checks[i](fields[i])  # type: ignore[misc]
                hits += 1
            except FieldError:
                misses += 1
    return hits >= 2 and hits >= 4 * misses

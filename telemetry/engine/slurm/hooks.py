"""What Slurm's hooks say of a job: a hook's file as values, the values as a report, a report against what is known.

A hook is news of a job, never the last word: hooks are lost and repeated, and only one of them says how a job ended.
So a report that says it all is applied to the job that it names beyond doubt. Any other one is a reason to ask
accounting about the job at once.

Sources: `src/plugins/jobcomp/script/jobcomp_script.c`, slurm.conf(5) on EpilogSlurmctld and MailProg; the values are
those that 22.05.8 gave, with those of later releases where they have another form.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, TypeAlias

from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.records import EARLIEST_S
from telemetry.engine.slurm.values import CLOSED_STRETCH_STATES, ENDED_STATES, parse_exit_code, parse_state
from telemetry.engine.transitions import REQUEUED_STATES

JOBCOMP: Final = "jobcomp"
EPILOG: Final = "epilog"
MAIL: Final = "mail"
_IN_SLURM: Final = ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_RESTART_COUNT")
# What is kept of a hook's environment; all of it is Slurm's own, no text of a user.
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    JOBCOMP: (
        "JOBID", "ARRAYJOBID", "ARRAYTASKID", "JOBSTATE", "EXITCODE", "SUBMIT", "START", "END", "NODECNT",
    ),
    EPILOG: (
        *_IN_SLURM, "SLURM_JOB_EXIT_CODE", "SLURM_JOB_EXIT_CODE2", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME",
    ),
    MAIL: (*_IN_SLURM, "SLURM_JOB_MAIL_TYPE", "SLURM_JOB_STATE"),
}  # fmt: skip
MOST_BYTES: Final = 4096  # of a hook's file
LONGEST: Final = 64  # letters of a value
LARGEST_JOB: Final = 2**32 - 3
LATEST_S: Final = 2**33  # in 2242: what is later no date can hold, and is no time of a job
_UNSET: Final = frozenset({2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1})
_MAILS: Final = {"Began": "began", "Ended": "ended", "Failed": "ended", "Requeued": "requeued"}
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
_CLOSED_WITHIN_S: Final = 120  # so long may a job be on its way out between its end and the hook that tells of it

Happened: TypeAlias = Literal["began", "ended", "requeued"]
Verdict: TypeAlias = Literal["apply", "known", "ask"]


class Report(NamedTuple):
    """What one run of a hook says. `fired_s` is when it ran; `task` is an array task's id as people write it.

    `state` is one of `ENDED_STATES`, and "" where the hook does not say with which state the job ended.
    """

    kind: str
    job: int
    fired_s: float
    happened: Happened
    array_job: int | None = None
    task: str = ""
    submit_s: int | None = None
    start_s: int | None = None
    end_s: int | None = None
    state: str = ""
    exit_code: int = 0
    exit_signal: int = 0
    restarts: int | None = None

    @property
    def is_whole(self) -> bool:
        """Say whether the report names one record beyond doubt and says how it ended, and when."""
        return bool(self.state and self.submit_s is not None and self.end_s is not None)


class Stored(NamedTuple):
    """What is stored of one record of a job."""

    job_id: str
    submit_s: int
    state: str
    start_s: int | None
    end_s: int | None


def read_file(data: bytes) -> tuple[str, dict[str, str]]:
    """Read a hook's file, `NAME=value` and NUL for each variable, `HOOK` first, `DONE` last: its kind, its values.

    Variables without a value and those that are not kept are left out. Raises FieldError `hook_cut`, `hook_unknown`,
    `bad_value`.
    """
    *parts, last = data.split(b"\0")
    if last or len(data) > MOST_BYTES or not parts or parts[-1] != b"DONE=1":
        raise FieldError("hook_cut", "The file is not whole")
    pairs = [part.partition(b"=") for part in parts]
    kind = pairs[0][2].decode("ascii", "replace")
    if pairs[0][0] != b"HOOK" or kind not in NAMES:
        raise FieldError("hook_unknown", "The file is of no hook that is known")
    given = {name.decode("ascii", "replace"): value for name, _, value in pairs}
    return kind, {name: _plain(name, given[name]) for name in NAMES[kind] if given.get(name)}


def _plain(name: str, value: bytes) -> str:
    text = value.decode("ascii", "replace")
    if len(text) > LONGEST or not text.isascii() or not text.isprintable():
        raise FieldError("bad_value", f"{name} is no value of Slurm's")
    return text


def read_report(kind: str, values: Mapping[str, str], *, fired_s: float) -> Report | None:
    """Read the values of one run of a hook; None for one that tells of no change (a mail of a time limit).

    Raises FieldError `hook_unknown`, `bad_job_id`, `bad_time`, `unknown_state`, `bad_exit_code`, `bad_number`.
    """
    if not EARLIEST_S <= fired_s <= LATEST_S:
        raise FieldError("bad_time", "The hook ran before 2000, or at no time")
    if kind == JOBCOMP:
        return _of_jobcomp(values, fired_s)
    if kind == EPILOG:
        return _of_epilog(values, fired_s)
    if kind == MAIL:
        return _of_mail(values, fired_s)
    raise FieldError("hook_unknown", "No hook of that kind is known")


def _of_jobcomp(values: Mapping[str, str], fired_s: float) -> Report:
    state = parse_state(values.get("JOBSTATE", "")).name
    job, array_job, task = _ids(values, "JOBID", "ARRAYJOBID", "ARRAYTASKID")
    submit_s, start_s, end_s = (_time(values, name) for name in ("SUBMIT", "START", "END"))
    report = Report(JOBCOMP, job, fired_s, "ended", array_job, task, submit_s, None, end_s)
    # A job that never got a node has its end for a start too.
    if start_s is not None and (_number(values, "NODECNT") or 0) > 0:
        report = report._replace(start_s=start_s)
    if state not in ENDED_STATES:  # it is back in the queue: no end, and the job's next stretch is another record
        is_requeue = state in REQUEUED_STATES or state == "PENDING"
        return report._replace(happened="requeued" if is_requeue else "ended")
    if None not in (start_s, end_s) and start_s > end_s:  # type: ignore[operator]
        raise FieldError("bad_time", "It ended before it started")
    code, signal = parse_exit_code(values.get("EXITCODE", ""))
    return report._replace(state=state, exit_code=code, exit_signal=signal)


def _of_epilog(values: Mapping[str, str], fired_s: float) -> Report:
    """Read what EpilogSlurmctld says: that a job gave its nodes back. Not whether it ended or is in the queue again."""
    job, array_job, task = _ids(values, *_IN_SLURM[:3])
    code, signal = _exit_of(values)
    return Report(
        EPILOG, job, fired_s, "ended", array_job, task, None, _time(values, "SLURM_JOB_START_TIME"),
        _time(values, "SLURM_JOB_END_TIME"), "", code, signal, _number(values, _IN_SLURM[3]),
    )  # fmt: skip


def _of_mail(values: Mapping[str, str], fired_s: float) -> Report | None:
    happened = _MAILS.get(values.get("SLURM_JOB_MAIL_TYPE", ""))
    if happened is None:
        return None
    job, array_job, task = _ids(values, *_IN_SLURM[:3])
    restarts = _number(values, _IN_SLURM[3])
    return Report(MAIL, job, fired_s, happened, array_job, task, restarts=restarts)  # type: ignore[arg-type]


def _exit_of(values: Mapping[str, str]) -> tuple[int, int]:
    """Return exit code and signal: of `3:0` where there is one, else of the status that wait(2) gives, 768."""
    if text := values.get("SLURM_JOB_EXIT_CODE2"):
        return parse_exit_code(text)
    status = _number(values, "SLURM_JOB_EXIT_CODE") or 0
    return status >> 8 & 0xFF, status & 0x7F


def _ids(values: Mapping[str, str], job_name: str, array_name: str, task_name: str) -> tuple[int, int | None, str]:
    """Return raw job id, array id and the task as people write it. What is in no array has Slurm's "not set" there."""
    job = _number(values, job_name)
    if job is None or not 0 < job <= LARGEST_JOB:
        raise FieldError("bad_job_id", f"{values.get(job_name, '')!r:.30} is not a job id")
    array, task = _number(values, array_name) or None, _number(values, task_name)
    if array is not None and array > LARGEST_JOB:
        raise FieldError("bad_job_id", f"{array} is not the id of an array")
    return job, array, f"{array}_{task}" if array is not None and task is not None else ""


def _number(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name, "")
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise FieldError("bad_number", f"{name} is {text!r:.30}, which is no number")
    number = int(text)
    return None if number in _UNSET else number


def _time(values: Mapping[str, str], name: str) -> int | None:
    if values.get(name) in ("Unknown", "None"):
        return None
    second = _number(values, name) or None
    if second is not None and not EARLIEST_S <= second <= LATEST_S:
        raise FieldError("bad_time", f"{name} is {second}, which is no time")
    return second


def digest_of(report: Report) -> int:
    """Digest what a report says into a signed 64-bit number: equal for the same news, told twice.

    Slurm repeats hooks when it starts anew: a time when the hook ran is part of it only where nothing else tells two
    runs apart.
    """
    is_dated = report.submit_s is not None or report.end_s is not None
    told = report._replace(fired_s=0.0 if is_dated else round(report.fired_s, 6))
    return int.from_bytes(blake2b(repr(tuple(told)).encode(), digest_size=8).digest(), "big", signed=True)


def judge(report: Report, records: Sequence[Stored]) -> Verdict:
    """Decide what to do with a report, given what is stored of its job, if anything.

    `apply`: it says what is not known, of a record that is. `known`: the change is stored already, whoever told of it.
    `ask`: accounting is to be asked, since the job is not known, or the hook does not say enough of it.
    """
    if report.is_whole:
        return _judge_end(report, records)
    if report.happened == "began":
        newest = max(records, key=lambda record: record.submit_s, default=None)
        return "known" if newest is not None and (newest.start_s is not None or newest.end_s is not None) else "ask"
    closed = any(record.end_s is not None and record.end_s >= report.fired_s - _CLOSED_WITHIN_S for record in records)
    holds_nodes = any(
        record.end_s is None and record.start_s is not None and record.start_s <= report.fired_s for record in records
    )
    return "known" if closed and not holds_nodes else "ask"


def _judge_end(report: Report, records: Sequence[Stored]) -> Verdict:
    record = next((record for record in records if record.submit_s == report.submit_s), None)
    if record is None:
        return "ask"
    if record.state in ENDED_STATES or record.state in CLOSED_STRETCH_STATES:
        return "known"
    # The last task of an array keeps the number of the whole, whose row stands for all tasks until it starts.
    is_it = record.job_id == report.task if report.array_job else "_" not in record.job_id
    return "apply" if is_it else "ask"

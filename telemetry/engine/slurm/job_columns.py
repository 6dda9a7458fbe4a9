"""Jobs that do not come as text, written in the columns of sacct: so one builder makes every record, by one rule.

What a job record needs, in which order of precedence, and what makes it none stands in `rows` alone.
"""

import re
from collections.abc import Mapping
from typing import Final

from telemetry.engine.slurm.columns import compile_plan, first_fault
from telemetry.engine.slurm.errors import FieldError, RowError
from telemetry.engine.slurm.records import JobRecord, Rejected, StepSeen
from telemetry.engine.slurm.rows import RowBuilder

COLUMNS: Final = (
    *("JobID", "JobIDRaw", "User", "UID", "State", "ExitCode", "Restarts", "NodeList", "Comment", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "Timelimit", "NNodes", "NCPUS", "ReqCPUS", "AllocTRES", "ReqTRES", "ReqMem"),
    *("Account", "Group", "Cluster", "Partition", "QOS", "JobName", "SubmitLine", "WorkDir", "Reason", "AdminComment"),
)
PLAN: Final = compile_plan("|".join(COLUMNS))
KEPT_OF_RECORD: Final = 4096  # characters of a record that was set aside
_LONE: Final = re.compile("[\ud800-\udfff]")  # halves of a pair: bytes that were not UTF-8, or escapes of nothing
# Flags beside a base state that sacct writes instead of it; what stands first wins.
_FLAGS: Final = (
    *("COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"),
    *("SPECIAL_EXIT", "STOPPED", "REVOKED", "RESV_DEL_HOLD", "SIGNALING", "POWER_UP_NODE"),
)


def build_record(builder: RowBuilder, columns: Mapping[str, str], number: int, raw: str) -> JobRecord | Rejected:
    """Build the record of a job written in columns; those that are missing are empty.

    `number` and `raw` are what a rejection names: which record it was, and its text.
    """
    values = [_LONE.sub("\ufffd", columns.get(name, "")) for name in COLUMNS]
    if any("\0" in value for value in values):
        return reject(FieldError("binary_data", "A zero byte: this is not text"), number, raw)
    try:
        # What was not UTF-8, and a new line, are welcome in what people write alone.
        fault = first_fault(PLAN, values) if any("\ufffd" in value or "\n" in value for value in values) else None
        record = builder.build(values) if fault is None else reject(fault, number, raw)
    except FieldError as error:
        return reject(first_fault(PLAN, values) or error, number, raw)
    except RowError as error:
        return reject(error, number, raw)
    if isinstance(record, StepSeen):
        return reject(FieldError("bad_job_id", "A step stands where a job should"), number, raw)
    return record


def reject(error: FieldError | RowError, number: int, raw: str) -> Rejected:
    """Set a record aside, with the beginning of its text."""
    return Rejected(number, error.code, error.detail, _LONE.sub("\ufffd", raw[:KEPT_OF_RECORD]))


def shown_id(job: int, *, array: int | None, task: int | None, tasks: str, het: int | None, offset: int | None) -> str:
    """Write a job id as sacct shows it: `7_3`, `7_[4-9%2]`, `12+1`, `8`. A job of 0 is none."""
    if array and task is not None:
        return f"{array}_{task}"
    if array and tasks:
        return f"{array}_[{tasks}]"
    return f"{het}+{offset}" if het and offset is not None else str(job)


def state_text(words: list[str]) -> str:
    """Choose from a base state and its flags what sacct would write: `["PENDING", "REQUEUED"]` is REQUEUED."""
    for flag in _FLAGS:
        if flag in words:
            return flag
    return words[0] if words else ""


def time_text(seconds: int | None) -> str:
    """Write an instant (UTC epoch seconds); 0 is none."""
    return str(seconds) if seconds else "Unknown"


def minutes_text(minutes: int | None) -> str:
    """Write a limit of time."""
    return "" if minutes is None else f"{minutes}:00"


def tres_text(amounts: Mapping[str, int]) -> str:
    """Write trackable resources, sizes in MiB. Energy, which nobody needs and which may be negative, is left out."""
    sized = {name: f"{amount}M" if name in ("mem", "vmem") else str(amount) for name, amount in amounts.items()}
    return ",".join(f"{name}={text}" for name, text in sized.items() if name != "energy")

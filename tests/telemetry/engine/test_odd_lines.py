"""Odd lines that Slurm has written, each with the row it is or the reason for which it is set aside.

Each is read among good neighbours, row by row and in columns, and those come through whole. Sources: sacct(1), the
dumps of 22.05, 24.11 and 25.11, Open XDMoD's reference log, and complaints of other readers of sacct.
"""

from typing import Any, NamedTuple

import pytest

from telemetry.engine.slurm.records import JobRecord, Rejected, StepSeen
from tests.telemetry.engine.sacct_texts import COLUMNS, row, text
from tests.telemetry.engine.test_read_sacct import read

DAY = 86_400
ZONED = "|2026-07-01T10+02:00" * 12  # as long as a time without one
SUBMIT_S = 1_782_900_000
NEVER = {"Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00", "NodeList": "None assigned", "AllocTRES": ""}


class Odd(NamedTuple):
    """A line by what differs from a good one, and what is expected of it: fields of its row, or a reason."""

    line: dict[str, str]
    expected: dict[str, Any] | str


CORPUS = {
    # States
    "cancelled by a uid": Odd({"State": "CANCELLED by 1001"}, {"state": "CANCELLED", "cancelled_by_uid": 1001}),
    "cancelled by the largest uid": Odd({"State": "CANCELLED by 4294967294"}, {"cancelled_by_uid": 4294967294}),
    "cut by a narrow column": Odd({"State": "CANCELLED+"}, {"state": "CANCELLED", "cancelled_by_uid": None}),
    "cut where two states begin so": Odd({"State": "RE+"}, "unknown_state"),
    "a state of a later release": Odd({"State": "NOVEL"}, "unknown_state"),
    "a state that is empty": Odd({"State": ""}, "empty_value"),
    "a stretch that ended in the queue": Odd({"State": "REQUEUED"}, {"state": "REQUEUED", "end_s": SUBMIT_S + 3900}),
    "a ghost that a refused submission left": Odd(
        {"State": "FAILED", "Start": "2026-07-01T10:00:00", "End": "2026-07-01T10:00:00", "Elapsed": "00:00:00",
         "NodeList": "None assigned", "AllocTRES": "", "ExitCode": "0:1"},
        {"state": "FAILED", "started": False, "elapsed_s": 0, "end_s": SUBMIT_S, "exit_signal": 1},
    ),
    "cancelled while it waited": Odd(
        NEVER | {"State": "CANCELLED by 1001", "End": "2026-07-01T10:20:00"},
        {"started": False, "start_s": None, "end_s": SUBMIT_S + 1200, "elapsed_s": 0},
    ),
    "waiting": Odd(NEVER | {"State": "PENDING"}, {"start_s": None, "end_s": None, "started": False}),
    "killed for its memory": Odd({"State": "OUT_OF_MEMORY", "ExitCode": "0:125"}, {"exit_signal": 125}),
    # Times
    "running, no end": Odd({"State": "RUNNING", "End": "Unknown"}, {"end_s": None, "elapsed_s": 3600}),
    "a running job that ran for 125 days": Odd(
        {"State": "RUNNING", "End": "Unknown", "Submit": "2026-03-01T10:00:00", "Eligible": "2026-03-01T10:00:00",
         "Start": "2026-03-01T10:00:00", "Elapsed": "125-00:00:00", "Timelimit": "UNLIMITED"},
        {"elapsed_s": 125 * DAY, "timelimit_s": None},
    ),
    "32 days": Odd(
        {"Submit": "2026-05-01T10:00:00", "Eligible": "2026-05-01T10:00:00", "Start": "2026-05-01T10:00:00",
         "End": "2026-06-02T10:00:00", "Elapsed": "32-00:00:00", "Timelimit": "60-00:00:00"},
        {"elapsed_s": 32 * DAY, "timelimit_s": 60 * DAY},
    ),
    "no days before the dash": Odd({"Elapsed": "0-01:00:00"}, {"elapsed_s": 3600}),
    "a run time that Slurm could not tell": Odd({"Elapsed": "INVALID"}, {"elapsed_s": 3600}),
    "a limit of the partition": Odd({"Timelimit": "Partition_Limit"}, {"timelimit_s": None}),
    "seconds since 1970": Odd({"Submit": str(SUBMIT_S)}, {"submit_s": SUBMIT_S}),
    "a leap day": Odd(
        {"Submit": "2024-02-29T10:00:00", "Eligible": "2024-02-29T10:00:00", "Start": "2024-02-29T23:30:00",
         "End": "2024-03-01T00:30:00"},
        {"submit_s": 1709200800, "end_s": 1709253000},
    ),
    "a leap day that there was not": Odd({"Submit": "2026-02-29T10:00:00"}, "bad_time"),
    "a time with a zone": Odd({"Submit": "2026-07-01T10+02:00"}, "bad_time"),
    "a name with separators and a time with a zone": Odd(
        {"Comment": f"x{ZONED}", "SubmitLine": f"sbatch x{ZONED}"}, {"submit_line": f"sbatch x{ZONED}"}
    ),
    "never submitted": Odd({"Submit": "Unknown"}, "no_submit_time"),
    "ended before it started": Odd({"End": "2026-07-01T09:00:00"}, "end_before_start"),
    "a clock that was ahead": Odd({"Submit": "2099-01-01T00:00:00"}, "future_date"),
    # Sizes
    "memory that overflowed": Odd(
        {"AllocTRES": "", "ReqMem": "2147486648Mn"}, {"mem_bytes": None, "extra": {"ReqMem": "2147486648Mn"}}
    ),
    "memory by core": Odd({"AllocTRES": "", "ReqMem": "2Gc"}, {"mem_bytes": 16 * 2**30}),
    "GPUs by type alone": Odd(
        {"AllocTRES": "cpu=4,gres/gpu:b=1,gres/gpu:a=2"}, {"gpus": 3, "gpu_types": ("a", "b"), "cpus": 8}
    ),
    "a TRES without a value": Odd({"AllocTRES": "cpu"}, "bad_tres"),
    "thousands of nodes as K": Odd({"NNodes": "1K"}, {"nodes": 1000}),
    "less than none": Odd({"NCPUS": "-1"}, "bad_count"),
    # Ids
    "a task of an array": Odd(
        {"JobID": "7_1", "JobIDRaw": "29"}, {"raw_job_id": 29, "array_job_id": 7, "array_task": 1}
    ),
    "tasks that wait": Odd(
        NEVER | {"JobID": "7_[2-9%3]", "JobIDRaw": "7", "State": "PENDING"}, {"array_tasks": 8, "array_task": None}
    ),
    "a part of a heterogeneous job": Odd(
        {"JobID": "50+1", "JobIDRaw": "51"}, {"raw_job_id": 51, "het_job_id": 50, "het_offset": 1}
    ),
    "digits of another script": Odd({"JobID": "10\u0661", "JobIDRaw": "10\u0661"}, "bad_job_id"),
    "no id": Odd({"JobID": "", "JobIDRaw": ""}, "empty_value"),
    "a step": Odd({"JobID": "101.batch", "JobIDRaw": "101.batch", "User": "", "UID": ""}, {}),
    # People
    "a user that was deleted": Odd({"User": ""}, {"user": "uid:1001"}),
    "nobody": Odd({"User": "", "UID": "4294967294"}, "no_user"),
    "an exit without a signal": Odd({"ExitCode": "1"}, "bad_exit_code"),
    "what people write": Odd(
        {"JobName": "a|b", "WorkDir": "/x\ny", "SubmitLine": "sbatch --wrap cat f | sort",
         "Comment": "\u202e\U0001f600 'q' \""},
        {"job_name": "a|b", "work_dir": "/x\ny", "submit_line": "sbatch --wrap cat f | sort",
         "comment": "\u202e\U0001f600 'q' \""},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CORPUS)
def test_an_odd_line_is_the_row_or_the_reason_expected_and_its_neighbours_stay(name: str) -> None:
    odd = CORPUS[name]
    neighbours = [row(JobID=str(number), JobIDRaw=str(number)) for number in (201, 202)]
    first, found, last = read(text(neighbours[0], row(**odd.line), neighbours[1]))
    assert [each.job_id for each in (first, last) if isinstance(each, JobRecord)] == ["201", "202"]
    if isinstance(odd.expected, str):
        assert isinstance(found, Rejected), found
        assert (found.reason_code, found.raw) == (odd.expected, row(**odd.line))
    elif name == "a step":
        assert found == StepSeen(101, "batch")
    else:
        assert isinstance(found, JobRecord), found
        assert {field: getattr(found, field) for field in odd.expected} == odd.expected


def test_a_sluid_and_whatever_else_a_later_release_tells_is_kept_beside_the_row() -> None:
    columns = (*COLUMNS, "SLUID", "Moonphase")
    first, second = read(text(f"{row()}|sAF3K9|full", f"{row(State='FAILED')}|sAF3KB|", columns=columns))
    assert isinstance(first, JobRecord) and isinstance(second, JobRecord)
    assert (first.raw_job_id, first.state, second.state) == (101, "COMPLETED", "FAILED")
    assert first.extra == {"SLUID": "sAF3K9", "Moonphase": "full"}

"""Accounting jobs from a dump of PySlurm 25.11's `pyslurm.db.Jobs` (`to_dict()`, as JSON), in the normal form.

Its objects of trackable resources must be converted before they are dumped: a job whose resources are the name of a
Python object is set aside, for what it used nobody knows. Of who cancelled a job it tells no uid.

PySlurm asks accounting without duplicates and keeps one record of each id: of a job that was requeued or resized it
tells the last stretch alone.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from telemetry.engine.slurm.documents import at, plain_number, plain_text
from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.job_columns import (
    PLAN,
    build_record,
    minutes_text,
    reject,
    shown_id,
    time_text,
    tres_text,
)
from telemetry.engine.slurm.pyslurm_tres import read_resources
from telemetry.engine.slurm.records import Outcome, StepSeen
from telemetry.engine.slurm.rows import RowBuilder

JOB_FIELDS: Final = (
    *("id", "array_id", "array_task_id", "array_tasks_waiting", "heterogeneous_id", "heterogeneous_offset"),
    *("user_name", "user_id", "state", "exit_code", "exit_code_signal", "requeue_count", "nodelist", "comment"),
    *("submit_time", "eligible_time", "start_time", "end_time", "elapsed_time", "time_limit", "allocated_tres"),
    *("requested_tres", "account", "cluster", "partition", "qos", "name", "submit_command", "working_directory"),
    *("state_reason", "admin_comment", "steps"),
)


def read_pyslurm_jobs(dump: Mapping[str, Any] | list[Any], *, now_s: int) -> Iterator[Outcome]:
    """Yield for each job its JobRecord or Rejected, then a StepSeen for each of its steps; the dump is in memory."""
    builder = RowBuilder(PLAN, now_s=now_s)
    for number, job in enumerate(dump.values() if isinstance(dump, Mapping) else dump, 1):
        try:
            columns, steps = write_columns(job), _steps(job)
        except FieldError as error:
            yield reject(error, number, json.dumps(job))
            continue
        yield build_record(builder, columns, number, json.dumps(job))
        yield from steps


def write_columns(job: object) -> dict[str, str]:
    """Write a job in the columns of sacct. Raises FieldError where it is no job of PySlurm."""
    text, number = partial(_text, job), partial(_number, job)
    job_id = number("id") or 0
    return {
        "JobID": shown_id(
            job_id, array=number("array_id"), task=number("array_task_id"), tasks=text("array_tasks_waiting"),
            het=number("heterogeneous_id"), offset=number("heterogeneous_offset"),
        ),
        "JobIDRaw": str(job_id or ""),
        "User": text("user_name"),
        "UID": "" if number("user_id") is None else str(number("user_id")),
        "State": text("state"),
        "ExitCode": f"{number('exit_code') or 0}:{number('exit_code_signal') or 0}",
        "Restarts": str(number("requeue_count") or 0),
        "NodeList": text("nodelist"),
        "Comment": text("comment"),
        "AdminComment": text("admin_comment"),
        "Submit": time_text(number("submit_time")),
        "Eligible": time_text(number("eligible_time")),
        "Start": time_text(number("start_time")),
        "End": time_text(number("end_time")),
        "ElapsedRaw": str(number("elapsed_time") or 0),
        "Timelimit": minutes_text(number("time_limit")),
        "AllocTRES": tres_text(read_resources(at(job, "allocated_tres"))),
        "ReqTRES": tres_text(read_resources(at(job, "requested_tres"))),
        "Account": text("account"),
        "Cluster": text("cluster"),
        "Partition": text("partition"),
        "QOS": text("qos"),
        "JobName": text("name"),
        "SubmitLine": text("submit_command"),
        "WorkDir": text("working_directory"),
        "Reason": text("state_reason"),
    }  # fmt: skip


def _steps(job: object) -> list[StepSeen]:
    steps, number = at(job, "steps"), _number(job, "id")
    if not isinstance(steps, dict) or not number:
        raise FieldError("bad_job_id", "A job without a number, or without a mapping of its steps")
    return [StepSeen(number, str(name)) for name in steps]


def _text(job: object, name: str) -> str:
    return plain_text(at(job, name))


def _number(job: object, name: str) -> int | None:
    value = at(job, name)
    return None if value == "UNLIMITED" else plain_number(value)

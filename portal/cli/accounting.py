"""What Slurm's accounting says of some jobs, while the portal is away: one call for all, and never soon again."""

import os
from collections.abc import Iterable
from typing import Final

from portal.cli.slurm import run
from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.job_ids import parse_job_id
from telemetry.engine.slurm.values import parse_exit_code, parse_state, parse_time
from telemetry.engine.waiting import Record

EVERY_S: Final = 60.0
TIMEOUT_S: Final = 50.0
COLUMNS: Final = "JobID,State,ExitCode,Submit,End"  # none of them holds the separator


class NoAccounting(Exception):
    """sacct is not there or did not answer: why."""


def ask(jobs: Iterable[int], cluster: str = "") -> list[Record]:
    """Ask sacct(1) once for some jobs, by number. Errors: `NoAccounting`."""
    where = [f"--clusters={cluster}"] if cluster else []
    numbers = ",".join(str(job) for job in sorted(set(jobs)))
    command = ("sacct", "-X", "-n", "-P", *where, "-o", COLUMNS, "-j", numbers)
    ran = run(command, os.environ, timeout_s=TIMEOUT_S, SLURM_BITSTR_LEN="0")  # ranges of waiting tasks in full
    if ran.trouble:
        raise NoAccounting(ran.trouble)
    return list(read_records(ran.out))


def read_records(text: str) -> Iterable[Record]:
    """Read what `ask` has printed; a line that is none is left out, for it says nothing of any job."""
    for line in text.splitlines():
        try:
            job_id, state, code, submit, end = line.split("|")
            status = parse_exit_code(code)
            yield Record(
                job_id, parse_state(state).name, parse_time(submit) or 0, parse_time(end), status[0], status[1],
                parse_job_id(job_id).array_tasks,
            )  # fmt: skip
        except (ValueError, FieldError):
            continue

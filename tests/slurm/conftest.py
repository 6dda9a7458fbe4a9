"""A real Slurm, started once for all tests that need one, with jobs of every fate in its accounting."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from telemetry.engine.slurm.columns import COMMAND
from tests.support.slurm import USERS, Slurm, slurm

ODD_NAME = "a|b, “c” ’"  # this Slurm prints a question mark for an emoji and for a mark that turns the writing
ODD_COMMENT = "first | line\nsecond|line"
# Written so that its submit line reads as a state and an exit code: two ways to cut it are right.
FORGED_COMMENT = "x|COMPLETED|0:0"
LONG = "sleep 600"


@pytest.fixture(scope="session")
def facility() -> Iterator[Slurm]:
    # Not pytest's folder, which only root may enter: jobs and commands of other users must reach it.
    with tempfile.TemporaryDirectory(prefix="gatehouse-slurm-") as name, slurm(Path(name)) as running:
        yield running


@dataclass(frozen=True)
class Fates:
    """Job ids by what became of them, and the accounting text that tells of it."""

    completed: int
    failed: int
    odd: int
    forged: int
    array: int
    pending_cancelled: int
    running_cancelled: int
    requeued: int
    out_of_memory: int
    waiting: int
    listed: bytes  # by a window of time
    named: bytes  # by the id of the job that was requeued


@pytest.fixture(scope="session")
def fates(facility: Slurm) -> Fates:
    """Submit jobs, end each in its own way, and read all of them with the command that the documentation names."""
    submit = facility.submit
    waiting = submit("--begin=now+1hour", script=LONG)
    pending = submit("--begin=now+1hour", script=LONG, user=USERS[1])
    running, requeued = submit(script=LONG), submit("--requeue", script=LONG)
    jobs = {
        "completed": submit("-n2", "--mem=100", script="sleep 1", user=USERS[1]),
        "failed": submit(script="exit 3"),
        "odd": submit(f"--job-name={ODD_NAME}", f"--comment={ODD_COMMENT}", script="true"),
        # Not of the user whose `sacct` is compared: a record that is set aside leaves its user's spans to Slurm.
        "forged": submit(f"--comment={FORGED_COMMENT}", script="true", user=USERS[1]),
        "array": submit("--array=1-3", script="true"),
        "out_of_memory": submit("--mem=20", script="python3 -c 'bytearray(200_000_000)'"),
    }
    facility.run("scancel", str(pending), user=USERS[1])
    for job in (running, requeued):
        facility.wait_for(job, "RUNNING")
    facility.run("scancel", str(running))
    facility.run("scontrol", "requeue", str(requeued))
    facility.wait_for_queue(requeued, "PENDING")
    facility.run("scancel", str(requeued))
    memory = "OUT_OF_MEMORY" if facility.has_cgroups else "FAILED"
    ends = {
        "completed": "COMPLETED",
        "failed": "FAILED",
        "odd": "COMPLETED",
        "forged": "COMPLETED",
        "array": "COMPLETED",
    }
    for name, state in (ends | {"out_of_memory": memory}).items():
        facility.wait_for(jobs[name], state)
    for job in (pending, running, requeued):
        facility.wait_for(job, "CANCELLED")
    asked = ("sacct", "-X", "-n", "-P", "-o", "State", "-j", str(jobs["array"]))
    facility.wait_until(lambda: facility.run(*asked).split() == ["COMPLETED"] * 3, "the array")
    expected = {*jobs.values(), pending, running, requeued, waiting}
    # A job that ended at once is known by its end first, without name or times, and found by no window of time.
    facility.wait_until(lambda: expected <= _listed(facility), "every job to be listed")
    return Fates(
        **jobs, pending_cancelled=pending, running_cancelled=running, requeued=requeued, waiting=waiting,
        listed=_read(facility, *WINDOW), named=_read(facility, "-j", str(requeued)),
    )  # fmt: skip


WINDOW = ("-a", "-S", "now-1hours", "-E", "now+1hours")


def _listed(facility: Slurm) -> set[int]:
    lines = facility.run("sacct", "-D", "-X", "-n", "-P", *WINDOW, "-o", "JobID").split()
    return {int(line.partition("_")[0]) for line in lines}


def _read(facility: Slurm, *which: str) -> bytes:
    columns = COMMAND.partition("--format=")[2]
    return facility.run("sacct", "-D", "-P", *which, f"--format={columns}").encode()

"""Waiting for jobs: what an id stands for, when a job is over, and which exit status says how it went.

Pure, and light enough for a login node: the `gatehouse wait` command and the portal fold the same records by it.
Statuses follow sbatch(1) `--wait`: the job's own, 128 + the signal, of an array the highest. Where a job did not end by
itself there is no status of its own; those numbers are ours, above every 128 + signal.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.job_ids import JobId, count_array_tasks, holds_any, holds_task, parse_job_id
from telemetry.engine.slurm.values import CLOSED_STRETCH_STATES, ENDED_STATES

CANCELLED: Final = 201
OVER_STATE: Final = {
    "CANCELLED": CANCELLED,
    "TIMEOUT": 202,
    "OUT_OF_MEMORY": 203,
    "NODE_FAIL": 204,
    "BOOT_FAIL": 204,
    "LAUNCH_FAILED": 204,
    "PREEMPTED": 205,
    "DEADLINE": 206,
    "REVOKED": 207,
}
# Slurm may put a job that ended so back into the queue (slurm.conf JobRequeue, PreemptMode): its next record follows.
MAY_RETURN: Final = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED"})
RETURNS_WITHIN_S: Final = 30
# Accounting may tell of an array's tasks out of order: what is all over now may have a task that is not told yet.
ARRAY_QUIET_S: Final = 15
ARRAY_LACKS_S: Final = 600
_ARRAY: Final = re.compile(r"\s(?:--array[= ]|-a ?)([0-9][0-9,:-]*)(?:%[0-9]+)?(?=\s|$)")
# Records of one number that are further apart are of two jobs: the ids began anew in between.
SAME_JOB_S: Final = 30 * 86_400
_SHORT: Final = 32


class Record(NamedTuple):
    """One record of a job, as accounting or the portal has it. Times: UTC epoch seconds."""

    job_id: str
    state: str
    submit_s: int
    end_s: int | None = None
    exit_code: int = 0
    exit_signal: int = 0
    tasks: int = 1


class Standing(NamedTuple):
    """How the records of what was asked for stand together. `status` once all is over; `counts` tasks by state."""

    state: str
    is_over: bool
    status: int | None
    counts: dict[str, int]
    worst: Record | None  # of those that are over


def read_asked(text: str) -> JobId:
    """Read the id of what is waited for: 123, 123_4, 123_[1-5], 123+1. Errors: `FieldError`."""
    asked = parse_job_id(text)
    if asked.step:
        raise FieldError("bad_job_id", f"{text[:60]!r} is a step of a job")
    return asked


def is_part(asked: JobId, told: JobId) -> bool:
    """Say whether a record's id is, or holds, something of what was asked for."""
    if asked.job != told.job or told.step:
        return False
    if asked.is_plain:
        return True
    if asked.het_offset is not None:
        return asked.het_offset == told.het_offset
    if told.het_offset is not None:
        return False
    if told.array_task is not None:
        return asked.array_task == told.array_task or bool(
            asked.array_spec and holds_task(asked.array_spec, told.array_task)
        )
    if not told.array_spec:
        return False
    if asked.array_task is not None:
        return holds_task(told.array_spec, asked.array_task)
    return bool(asked.array_spec) and holds_any(told.array_spec, str(asked.array_spec))


def pick(asked: JobId, records: Iterable[Record]) -> list[Record]:
    """Return the records that make up what was asked for: of each id the newest, none of an older job of that number.

    A task that has not begun has no record of its own: it stands in that of its array's waiting tasks, which then
    counts for it.
    """
    newest: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: record.submit_s):
        if is_part(asked, _read_told(record.job_id)):
            newest[record.job_id] = record
    if not newest:
        return []
    last = max(newest.values(), key=lambda record: record.submit_s)
    alike = parse_job_id(last.job_id).is_plain
    return [
        record
        for record in newest.values()
        if last.submit_s - record.submit_s <= SAME_JOB_S and parse_job_id(record.job_id).is_plain == alike
    ]


def _read_told(text: str) -> JobId:
    return _read_short(text) if len(text) <= _SHORT else parse_job_id(text)


@lru_cache(maxsize=20_000)  # a large array's, which many may ask about, each for a part of it
def _read_short(text: str) -> JobId:
    return parse_job_id(text)


def is_over(record: Record, now_s: int) -> bool:
    """Say whether a record is a job's last word: it ended, and not so that it is about to come back."""
    if record.state not in ENDED_STATES:
        return False
    return record.state not in MAY_RETURN or record.end_s is None or now_s - record.end_s >= RETURNS_WITHIN_S


def exit_status(state: str, code: int, signal: int) -> int:
    """Return the exit status of a job that is over; 0 only for one that completed."""
    if state in OVER_STATE:
        return OVER_STATE[state]
    if signal:
        return 128 + (signal & 0x3F)
    return min(code, 255) or (0 if state == "COMPLETED" else 1)


def stand(records: Sequence[Record], *, now_s: int) -> Standing | None:
    """Return how some records stand together; None where there are none."""
    if not records:
        return None
    counts: Counter[str] = Counter()
    for record in records:
        counts[record.state] += record.tasks
    over = [record for record in records if is_over(record, now_s)]
    worst = max(over, key=status_of, default=None)
    all_over = len(over) == len(records) and worst is not None
    return Standing(_state(records), all_over, status_of(worst) if all_over and worst else None, dict(counts), worst)


def is_whole(asked: JobId, known: int, *, submit_line: str, quiet_s: int) -> bool:
    """Say whether so many tasks of an array can be all of those asked for.

    How many there are is sure where the id says it or the command line of the submission; elsewhere, and should one
    never be told, a time without news decides.
    """
    named = _ARRAY.search(submit_line)
    spec = asked.array_spec or (named[1] if named else None)
    try:
        wanted = count_array_tasks(spec) if spec else 0
    except FieldError:
        wanted = 0
    if wanted:
        return known >= wanted or quiet_s >= ARRAY_LACKS_S
    return quiet_s >= ARRAY_QUIET_S


def status_of(record: Record) -> int:
    """Return the exit status that a record alone stands for."""
    return exit_status(record.state, record.exit_code, record.exit_signal)


def _state(records: Sequence[Record]) -> str:
    """Return the state that says most: running before waiting before over, and of those the worst."""
    living = [record.state for record in records if record.state not in ENDED_STATES | CLOSED_STRETCH_STATES]
    if living:
        return next((state for state in living if state != "PENDING"), "PENDING")
    closed = [record.state for record in records if record.state in CLOSED_STRETCH_STATES]
    return closed[0] if closed else max(records, key=status_of).state


def describe_counts(counts: dict[str, int]) -> str:
    """Say how many tasks are in which state: "3 running, 5 completed, 1 failed"."""
    order = sorted(counts, key=lambda state: (state in ENDED_STATES, state not in ("RUNNING", "COMPLETING"), state))
    return ", ".join(f"{counts[state]:,} {state.replace('_', ' ').lower()}" for state in order)

"""The controller's queue at one instant, and what changed between two looks at it.

A look is cheap and says little: which jobs there are and in which state. What a job is, accounting knows
(`sacct -j`): the looks only say whom to ask about. So each record has one form, whoever told of it.

It also tells of a job what accounting does not: why it waits, and where it writes (sacct from 24.11 on alone). That is
no change of a job.

Sources: squeue(1), `--Format` with a suffix after each field, which no field is cut to, and `--json`; PySlurm 25.11's
`pyslurm.Jobs`. squeue leaves out what has ended; its JSON of 22.05 does not, nor does PySlurm: that is left out here.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any, Final, NamedTuple

from telemetry.engine.slurm.documents import Dialect, Record, at, build_all, plain_number, plain_text, read_document
from telemetry.engine.slurm.errors import SHOWN, FieldError, FormatError
from telemetry.engine.slurm.job_columns import state_text
from telemetry.engine.slurm.values import ENDED_STATES, parse_count, parse_state

FORMAT: Final = "JobID:|,State:|,RestartCnt:|"
QUEUE_FIELDS: Final = ("id", "state", "requeue_count")
NOTE_FIELDS: Final = ("id", "state_reason", "standard_output", "standard_error")
_NOTHING: Final = frozenset({"None", "(null)", "N/A"})


class Standing(NamedTuple):
    """How a job stands in the queue: its state, and how often it was requeued."""

    state: str
    restarts: int


class QueueNote(NamedTuple):
    """What else the queue tells of a job: why it waits and where it writes, in Slurm's patterns; "" where not."""

    reason: str = ""
    stdout: str = ""
    stderr: str = ""


Queue = dict[int, Standing]
Notes = dict[int, QueueNote]


def read_queue(text: str) -> Queue:
    """Read what `squeue --noheader --Format FORMAT` printed, by raw job id. Errors: `FormatError`.

    One bad line spoils the look: a job that is taken for gone would be asked about in vain, over and over.
    """
    queue: Queue = {}
    for line in filter(None, text.splitlines()):
        fields = [field.strip() for field in line.split("|")]
        try:
            job, state, restarts = fields[:3]
            number = int(job) if job.isascii() and job.isdigit() else 0
            if not number:
                raise FieldError("bad_job_id", f"{job[:60]!r} is not a job id")
            queue[number] = Standing(parse_state(state).name, parse_count(restarts) or 0)
        except (ValueError, FieldError) as error:
            raise FormatError("not_a_queue", f"squeue printed what is no queue: {line[:SHOWN]!r}.") from error
    return queue


def read_queue_json(text: str) -> Queue:
    """Read what `squeue --json` or slurmrestd's `jobs` answered.

    Errors: FormatError, those of `documents.read_document` (an empty list with a warning is no empty queue), and
    `odd_record`.
    """
    return _standing(build_all(read_document(text, "jobs"), _job))


def read_queue_dump(dump: Mapping[str, Any] | list[Any]) -> Queue:
    """Read a dump of `pyslurm.Jobs`: of each job `QUEUE_FIELDS` and whatever else. Errors: FormatError `odd_record`."""
    try:
        return _standing(map(_dumped, dump.values() if isinstance(dump, Mapping) else dump))
    except FieldError as error:
        raise FormatError("odd_record", f"PySlurm tells of a job that is none: {error.detail}.") from error


def read_notes_dump(dump: Mapping[str, Any] | list[Any]) -> Notes:
    """Read what else a dump of `pyslurm.Jobs` tells: of each job `NOTE_FIELDS`; what is no text is left out."""
    notes: Notes = {}
    for record in dump.values() if isinstance(dump, Mapping) else dump:
        job, *texts = (record.get(name) for name in NOTE_FIELDS)
        if number := plain_number(job):
            notes[number] = QueueNote(*(said(text) if isinstance(text, str) else "" for text in texts))
    return notes


def said(text: str) -> str:
    """Return a text of Slurm's, "" where it stands for none."""
    return "" if text in _NOTHING or not text.isprintable() or "\N{REPLACEMENT CHARACTER}" in text else text


def _job(record: Record, dialect: Dialect) -> tuple[int, Standing]:
    states = dialect.words(at(record, "job_state"))
    return _entry(at(record, "job_id"), state_text(states), at(record, "restart_cnt"))


def _dumped(record: object) -> tuple[int, Standing]:
    job, state, restarts = (at(record, name) for name in QUEUE_FIELDS)
    return _entry(job, plain_text(state), restarts)


def _entry(job: object, state: str, restarts: object) -> tuple[int, Standing]:
    number = plain_number(job)
    if not number or number < 0:
        raise FieldError("bad_job_id", f"{job!r:.60} is not a job id")
    return number, Standing(parse_state(state).name, plain_number(restarts) or 0)


def _standing(jobs: Iterable[tuple[int, Standing]]) -> Queue:
    return {number: standing for number, standing in jobs if standing.state not in ENDED_STATES}


def find_changed(before: Mapping[int, Standing], after: Mapping[int, Standing]) -> set[int]:
    """Return the jobs that came, changed or left between two looks."""
    return {job for job in before.keys() | after.keys() if before.get(job) != after.get(job)}


def find_unsettled(asked: Set[int], queue: Mapping[int, Standing], states: Mapping[int, Iterable[str]]) -> set[int]:
    """Return those of the jobs asked about of which accounting does not know yet what the queue says.

    `states` are what accounting said: of each job the states of all its records. A job that left the queue is
    settled once every record of it has ended; one in the queue once a record is in the state it is seen in.
    """
    return {job for job in asked if not _is_settled(queue.get(job), frozenset(states.get(job, ())))}


# Until its record is closed, accounting calls a job that is ending by the state it ran in; one that is made
# ready it calls pending or running, as it did before.
_ALIKE: Final = {
    "COMPLETING": frozenset({"RUNNING", *ENDED_STATES}),
    "CONFIGURING": frozenset({"PENDING", "RUNNING"}),
    "STAGE_OUT": frozenset({"RUNNING", *ENDED_STATES}),
    "SIGNALING": frozenset({"RUNNING"}),
    "STOPPED": frozenset({"RUNNING", "SUSPENDED"}),
    # Accounting keeps the base state of a job that is held or queued again.
    **dict.fromkeys(
        ("REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"), frozenset({"PENDING"})
    ),
}
_GONE: Final = ENDED_STATES | {"REQUEUED", "RESIZING"}


def _is_settled(standing: Standing | None, states: frozenset[str]) -> bool:
    if standing is None:
        return bool(states) and states <= _GONE and not states.isdisjoint(ENDED_STATES)
    return not states.isdisjoint({standing.state} | _ALIKE.get(standing.state, frozenset()))

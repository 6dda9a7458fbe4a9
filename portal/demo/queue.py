"""The queue of the living demo: jobs that wait and run, and when each starts and ends. Pure, and without a memory.

When a job starts, how long it runs and how it ends follow from its number alone. So whoever takes over the queue, after
a restart or a night switched off, goes on as if nothing had happened.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from portal.demo import texts
from portal.demo.plan import AGENT, CANCELLED
from portal.demo.records import exit_of, numbers_of, spans_text
from portal.demo.sampling import AGENT_RUNTIME, HUMAN_RUNTIME
from telemetry.engine.slurm.records import NEVER_ASSIGNED, JobRecord

MAX_RUNNING: Final = 150
MAX_PENDING: Final = 40
EVENTS_A_STEP: Final = 2
_CATCH_UP: Final = 40  # jobs that ended while nobody looked, in one step
_FEW_LONG: Final = 0.015  # of jobs submitted live, those that may run for hours; others are over in half an hour
_SHORT: Final = 0.74
_ENDS: Final = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL")
_WEIGHTS: Final = (86, 8, 3, 2.6, 0.4)
_QUEUED_S: Final = (3, 240)
_TRIAL_QUEUED_S: Final = (3, 90)


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a job: seconds in the queue, seconds of running, its last state; cancelled before it starts?"""

    wait_s: int
    runtime_s: int
    state: str
    starts: bool


@dataclass(slots=True)
class Waiting:
    """A job in the queue, or the waiting tasks of an array under one record."""

    record: JobRecord
    actor: str

    @property
    def key(self) -> tuple[int, int]:
        return self.record.raw_job_id, self.record.submit_s


@dataclass(slots=True)
class Running(Waiting):
    """A job on its nodes; `end_s` is when it will end."""

    end_s: int = 0


def fate_of(record: JobRecord, actor: str) -> Fate:
    """Return what becomes of a job, drawn from its number and submit time."""
    rng = Random(f"{record.raw_job_id}:{record.submit_s}")
    curve = AGENT_RUNTIME if actor == AGENT else HUMAN_RUNTIME
    quantile = rng.random() * (1.0 if rng.random() < _FEW_LONG else _SHORT)
    runtime = max(2, int(curve.at(quantile)))
    state = rng.choices(_ENDS, weights=_WEIGHTS)[0]
    if rng.random() < CANCELLED[actor]:
        state = "CANCELLED"
    limit = record.timelimit_s
    if limit is not None and (runtime > limit or state == "TIMEOUT"):
        state, runtime = "TIMEOUT", limit
    starts = state != "CANCELLED" or rng.random() < 0.45
    queued_s = _TRIAL_QUEUED_S if record.qos == "trial" else _QUEUED_S
    return Fate(rng.randrange(*queued_s), runtime, state, starts)


@dataclass(slots=True)
class Queue:
    """Everything that waits and runs. `step` says what happens next, as records to be ingested."""

    waiting: list[Waiting] = field(default_factory=list)
    running: dict[tuple[int, int], Running] = field(default_factory=dict)

    def take_over(self, found: Iterable[tuple[JobRecord, str]]) -> None:
        """Take over jobs as they are stored: (record, actor) of each that waits or runs."""
        for record, actor in found:
            if record.state == "PENDING":
                self.waiting.append(Waiting(record, actor))
            else:
                self._run(record, actor)

    def add(self, record: JobRecord, actor: str) -> None:
        """Put a job just submitted into the queue."""
        self.waiting.append(Waiting(record, actor))

    @property
    def pending(self) -> int:
        """How many jobs wait, each task of an array counted."""
        return sum(job.record.array_tasks for job in self.waiting)

    @property
    def is_full(self) -> bool:
        return self.pending >= MAX_PENDING

    def _run(self, record: JobRecord, actor: str) -> None:
        start_s, runtime_s = record.start_s or record.submit_s, fate_of(record, actor).runtime_s
        # A job that was there before us may have run longer than its number says. Doubling gives every simulator
        # that finds it the same end, however far it is by then.
        while runtime_s <= record.elapsed_s:
            runtime_s *= 2
        if record.timelimit_s is not None and record.elapsed_s < record.timelimit_s:
            runtime_s = min(runtime_s, record.timelimit_s)
        job = Running(record, actor, start_s + runtime_s)
        self.running[job.key] = job

    def step(self, now_s: int) -> list[JobRecord]:
        """Return the records of what happens by `now_s`: jobs that end, are cancelled, start. Few at a time."""
        records = list(self._ends(now_s))
        if len(records) < EVENTS_A_STEP:
            records += self._starts(now_s)
        return records

    def force(self, now_s: int) -> list[JobRecord]:
        """End the job that would end next, now: for a queue so full that nothing else can happen."""
        if not self.running:
            return []
        job = min(self.running.values(), key=lambda job: job.end_s)
        return [self._end(job, now_s)]

    def _ends(self, now_s: int) -> Iterator[JobRecord]:
        due = sorted((job for job in self.running.values() if job.end_s <= now_s), key=lambda job: job.end_s)
        overdue = sum(1 for job in due if job.end_s < now_s - 60)
        for job in due[: max(EVENTS_A_STEP, min(overdue, _CATCH_UP))]:
            yield self._end(job, max(job.end_s, (job.record.start_s or 0) + job.record.elapsed_s))

    def _end(self, job: Running, end_s: int) -> JobRecord:
        del self.running[job.key]
        fate, record = fate_of(job.record, job.actor), job.record
        code, signal = exit_of(Random(record.raw_job_id), fate.state)
        elapsed = end_s - (record.start_s or end_s)
        by = record.uid if fate.state == "CANCELLED" else None
        return record._replace(
            state=fate.state, end_s=end_s, elapsed_s=elapsed, exit_code=code, exit_signal=signal, cancelled_by_uid=by
        )

    def _starts(self, now_s: int) -> list[JobRecord]:
        for job in self.waiting:
            fate = fate_of(job.record, job.actor)
            if job.record.submit_s + fate.wait_s > now_s:
                continue
            if not fate.starts and job.record.array_tasks == 1:
                self.waiting.remove(job)
                return [job.record._replace(state="CANCELLED", end_s=now_s, cancelled_by_uid=job.record.uid, reason="")]
            if len(self.running) < MAX_RUNNING:
                return self._start(job, now_s)
        return []

    def _start(self, job: Waiting, now_s: int) -> list[JobRecord]:
        """Start a job, or an array's next task under a record of its own; the last task takes over the array's."""
        record, records = job.record, []
        if record.array_job_id is not None and "[" in record.job_id:
            record, rest = next_task(record)
            if rest is not None:
                job.record = rest
                records.append(rest)
        if not records:
            self.waiting.remove(job)
        nodes = texts.node_list(Random(record.raw_job_id), record.partition, record.nodes)
        started = record._replace(state="RUNNING", start_s=now_s, started=True, node_list=nodes, reason="")
        self._run(started, job.actor)
        return [*records, started]

    def beat(self, now_s: int) -> list[JobRecord]:
        """Return the records of all that runs, as seen now: so their usage grows while they run."""
        for job in self.running.values():
            seen = max(job.record.elapsed_s, min(now_s, job.end_s - 1) - (job.record.start_s or now_s))
            job.record = job.record._replace(elapsed_s=seen)
        return [job.record for job in self.running.values()]


def next_task(array: JobRecord) -> tuple[JobRecord, JobRecord | None]:
    """Split the first waiting task off an array's record: the task, and what is left (None after the last).

    A long id was cut when it was stored: tasks that it no longer names whole are never started.
    """
    spans = array.job_id.partition("[")[2]
    tasks = numbers_of(spans[:-1] if spans.endswith("]") else spans.rpartition(",")[0])
    base, task = array.array_job_id or array.raw_job_id, tasks[0]
    raw_id = base + 1 + task if len(tasks) > 1 else base
    single = array._replace(
        raw_job_id=raw_id, job_id=f"{base}_{task}", array_task=task, array_tasks=1, node_list=NEVER_ASSIGNED
    )
    if len(tasks) == 1:
        return single, None
    return single, array._replace(job_id=f"{base}_[{spans_text(tasks[1:])}]", array_tasks=len(tasks) - 1)

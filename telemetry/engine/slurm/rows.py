"""From the column values of one row to the normal form: what a job record needs, for all formats."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from telemetry.engine.slurm.columns import Plan
from telemetry.engine.slurm.errors import RowError
from telemetry.engine.slurm.job_ids import JobId, parse_job_id
from telemetry.engine.slurm.records import NEVER_ASSIGNED, JobRecord, StepSeen, campaign_of
from telemetry.engine.slurm.values import (
    CLOSED_STRETCH_STATES,
    ENDED_STATES,
    MemorySize,
    Tres,
    parse_count,
    parse_duration,
    parse_exit_code,
    parse_memory,
    parse_state,
    parse_time,
    parse_tres,
)

NO_VALUE = 4294967294  # Slurm's NO_VAL: "not set" in an unsigned 32-bit number
FUTURE_SLACK_S = 86_400
_words = str.split
_CLOSED = ENDED_STATES | CLOSED_STRETCH_STATES
_USED = _words(
    "jobid jobidraw user uid account group cluster partition qos state submit eligible start end "
    "elapsed elapsedraw timelimit nnodes allocnodes ncpus alloccpus reqcpus reqmem alloctres reqtres "
    "exitcode nodelist jobname submitline workdir reason comment restarts"
)


_COUNTS = ("nnodes", "allocnodes", "ncpus", "alloccpus", "reqcpus")
_TEXTS = _words("account group cluster partition qos nodelist jobname submitline workdir reason comment")


class _Times(NamedTuple):
    submit_s: int
    eligible_s: int | None
    start_s: int | None
    end_s: int | None
    elapsed_s: int
    timelimit_s: int | None


# nodes, cpus, requested cpus, gpus, gpu types, memory in bytes
_Resources: TypeAlias = tuple[int, int, int, int, tuple[str, ...], int | None]


class RowBuilder:
    """Build job records from rows of one plan; `now_s` (UTC epoch) is what "in the future" is measured by."""

    __slots__ = ("_at", "_extra", "_latest_s", "_others", "_strong", "_texts")

    def __init__(self, plan: Plan, *, now_s: int) -> None:
        self._latest_s = now_s + FUTURE_SLACK_S
        # A column that is not there reads the empty string that `build` puts behind the last value.
        self._at = {name: plan.index.get(name, plan.width) for name in _USED}
        self._texts = itemgetter(*(self._at[name] for name in _TEXTS))
        unused = {i for key, i in plan.index.items() if key not in self._at}
        self._extra = tuple((i, plan.names[i]) for i in sorted(unused))
        self._strong = tuple((i, check) for i in plan.strong if (check := plan.checks[i]) is not None)
        self._others = tuple((i, check) for i, check in self._strong if i in unused)

    def build(self, values: Sequence[str]) -> JobRecord | StepSeen:
        """Build the record of one row, or the sign that a step was seen.

        Raises FieldError for a value that its column does not allow, RowError (`no_user`, `no_submit_time`,
        `future_date`, `no_end_time`, `end_before_start`, `raw_id_unknown`) for a row that is no job.
        """
        row = [*values, ""]
        shown, raw = self._ids(row)
        if shown.step or raw.step:
            for i, check in self._strong:
                check(row[i])
            return StepSeen(raw.job, raw.step or shown.step or "")
        for i, check in self._others:
            check(row[i])
        return self._record(row, shown, raw)

    def _record(self, row: Sequence[str], shown: JobId, raw: JobId) -> JobRecord:
        at = self._at
        state = parse_state(row[at["state"]])
        uid = parse_count(row[at["uid"]])
        exit_code, exit_signal = parse_exit_code(row[at["exitcode"]])
        restarts = parse_count(row[at["restarts"]])
        memory = parse_memory(row[at["reqmem"]])
        extra = {name: row[i] for i, name in self._extra if row[i]}
        if memory.overflow:
            extra["ReqMem"] = row[at["reqmem"]]
        alloc, asked = parse_tres(row[at["alloctres"]]), parse_tres(row[at["reqtres"]])
        counts = {name: parse_count(row[at[name]]) for name in _COUNTS}
        times = self._times(row, closed=state.name in _CLOSED)
        started = times.start_s is not None and row[at["nodelist"]] != NEVER_ASSIGNED
        values: tuple[Any, ...] = (  # in the order of JobRecord's fields: by name costs a microsecond a row
            raw.job,
            row[at["jobid"]] or str(raw.job),
            _user(row[at["user"]], uid),
            state.name,
            *times,
            *_array_and_het(shown),
            *_resources(counts, alloc, asked, memory, started=started),
            None if uid == NO_VALUE else uid,
            state.cancelled_by_uid,
            exit_code,
            exit_signal,
            restarts or 0,
            started,
            campaign_of(row[at["comment"]]),
            *self._texts(row),
            extra,
        )
        return JobRecord(*values)

    def _ids(self, row: Sequence[str]) -> tuple[JobId, JobId]:
        shown_text, raw_text = row[self._at["jobid"]], row[self._at["jobidraw"]]
        raw = parse_job_id(raw_text or shown_text)
        shown = raw if not shown_text or shown_text == raw_text else parse_job_id(shown_text)
        if not raw_text and not shown.step and not shown.is_plain:
            raise RowError(
                "raw_id_unknown", f"{shown_text} has a job number of its own: add the JobIDRaw column"
            )
        return shown, raw

    def _times(self, row: Sequence[str], *, closed: bool) -> _Times:
        at = self._at
        submit_s, eligible_s = parse_time(row[at["submit"]]), parse_time(row[at["eligible"]])
        start_s, end_s = parse_time(row[at["start"]]), parse_time(row[at["end"]])
        elapsed_s = parse_count(row[at["elapsedraw"]])
        if elapsed_s is None:
            elapsed_s = parse_duration(row[at["elapsed"]])
        if submit_s is None:
            raise RowError("no_submit_time", "A record without a submit time has no key")
        end_s = self._end(start_s, end_s, elapsed_s) if closed else None
        if max(submit_s, end_s or 0) > self._latest_s:
            raise RowError(
                "future_date", "Submitted or ended more than a day from now: is the clock or zone wrong?"
            )
        if elapsed_s is None:
            elapsed_s = end_s - start_s if end_s is not None and start_s is not None else 0
        return _Times(submit_s, eligible_s, start_s, end_s, elapsed_s, parse_duration(row[at["timelimit"]]))

    def _end(self, start_s: int | None, end_s: int | None, elapsed_s: int | None) -> int:
        if end_s is None and start_s is not None and elapsed_s is not None:
            end_s = start_s + elapsed_s
        if end_s is None:
            raise RowError("no_end_time", "The state says that the job has ended, but not when")
        if start_s is not None and end_s < start_s:
            raise RowError("end_before_start", f"Ended {start_s - end_s} s before its start")
        return end_s


def _array_and_het(shown: JobId) -> tuple[int | None, int | None, int, int | None, int | None]:
    array = None if shown.array_task is None and shown.array_spec is None else shown.job
    het = None if shown.het_offset is None else shown.job
    return array, shown.array_task, shown.array_tasks, het, shown.het_offset


def _resources(
    counts: dict[str, int | None], alloc: Tres, asked: Tres, memory: MemorySize, *, started: bool
) -> _Resources:
    """Choose what was allocated over what was asked for; the latter stands while nothing is allocated."""
    nodes = _first(counts["nnodes"], counts["allocnodes"], alloc.nodes)
    cpus = _first(counts["ncpus"], counts["alloccpus"], alloc.cpus)
    req_cpus = _first(counts["reqcpus"], asked.cpus)
    mem_bytes = alloc.mem_bytes if alloc.mem_bytes is not None else asked.mem_bytes
    if not started:
        nodes, cpus = nodes or _first(asked.nodes), cpus or req_cpus
    if mem_bytes is None and memory.size_bytes is not None:
        mem_bytes = memory.size_bytes * {"node": nodes, "cpu": cpus}.get(memory.per, 1)
    holder = alloc if started or alloc.cpus is not None else asked
    return nodes, cpus, req_cpus, holder.gpus, holder.gpu_types, mem_bytes


def _first(*counts: int | None) -> int:
    return next((count for count in counts if count is not None), 0)


def _user(name: str, uid: int | None) -> str:
    if name:
        return name
    if uid is None or uid == NO_VALUE:
        raise RowError("no_user", "A job without user name and uid belongs to nobody")
    return f"uid:{uid}"

"""From the column values of one row to the normal form: what a job record needs, for all formats."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

from telemetry.engine.slurm.columns import FILLED, Plan
from telemetry.engine.slurm.errors import FieldError, RowError
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
CLOSED = ENDED_STATES | CLOSED_STRETCH_STATES
_IDS = ("jobid", "jobidraw")
_FACTS = ("user", "uid", "state", "exitcode", "restarts", "nodelist", "comment")
_TIMES = ("submit", "eligible", "start", "end", "elapsedraw", "elapsed", "timelimit")
SIZES = ("nnodes", "allocnodes", "ncpus", "alloccpus", "reqcpus", "alloctres", "reqtres", "reqmem")
_TEXTS = (
    *("account", "group", "cluster", "partition", "qos", "nodelist"),
    *("jobname", "submitline", "workdir", "reason", "comment"),
)
USED = frozenset({*_IDS, *_FACTS, *_TIMES, *SIZES, *_TEXTS})

# array job, array task, array tasks, job and offset of a heterogeneous part
_Place: TypeAlias = tuple[int | None, int | None, int, int | None, int | None]
_PLAIN: _Place = (None, None, 1, None, None)
# submit, eligible, start, end, elapsed, time limit
_Times: TypeAlias = tuple[int, int | None, int | None, int | None, int, int | None]
# nodes, cpus, requested cpus, gpus, gpu types, memory in bytes
_Sizes: TypeAlias = tuple[int, int, int, int, tuple[str, ...], int | None]


class RowBuilder:
    """Build job records from rows of one plan; `now_s` (UTC epoch) is what "in the future" is measured by."""

    __slots__ = (
        "_extra",
        "_facts",
        "_filled",
        "_ids",
        "_latest_s",
        "_others",
        "_sizes",
        "_strong",
        "_texts",
        "_times",
    )

    def __init__(self, plan: Plan, *, now_s: int) -> None:
        def pick(names: Sequence[str]) -> Callable[[Sequence[str]], tuple[str, ...]]:
            # A column that is not there reads the empty string that `build` puts behind the last value.
            return itemgetter(*(plan.index.get(name, plan.width) for name in names))

        self._latest_s = now_s + FUTURE_SLACK_S
        self._ids, self._facts, self._texts = pick(_IDS), pick(_FACTS), pick(_TEXTS)
        self._times, self._sizes = pick(_TIMES), pick(SIZES)
        unused = {i for key, i in plan.index.items() if key not in USED}
        self._filled = tuple(sorted(plan.index[name] for name in FILLED & plan.index.keys()))
        self._extra = tuple((i, plan.names[i]) for i in sorted(unused))
        self._strong = tuple((i, check) for i in plan.strong if (check := plan.checks[i]) is not None)
        self._others = tuple((i, check) for i, check in self._strong if i in unused)

    def build(self, values: Sequence[str]) -> JobRecord | StepSeen:
        """Build the record of one row, or the sign that a step was seen.

        Raises FieldError for a value that its column does not allow, RowError (`no_user`, `no_submit_time`,
        `future_date`, `no_end_time`, `end_before_start`, `raw_id_unknown`) for a row that is no job.
        """
        row = [*values, ""]
        for i in self._filled:
            if not row[i]:
                raise FieldError("empty_value", f"Column {i + 1} may not be empty.")
        shown_text, raw_text = self._ids(row)
        if shown_text == raw_text and raw_text.isdigit() and raw_text.isascii() and len(raw_text) <= 18:
            return self._record(row, shown_text, int(raw_text), _PLAIN)
        raw = parse_job_id(raw_text or shown_text)
        shown = raw if not shown_text or shown_text == raw_text else parse_job_id(shown_text)
        if shown.step or raw.step:
            for i, check in self._strong:
                check(row[i])
            return StepSeen(raw.job, raw.step or shown.step or "")
        if not raw_text and not shown.is_plain:
            detail = f"{shown_text} has a job number of its own: add the JobIDRaw column"
            raise RowError("raw_id_unknown", detail)
        return self._record(row, shown_text or raw_text, raw.job, _place(shown))

    def _record(self, row: Sequence[str], shown: str, raw_job_id: int, place: _Place) -> JobRecord:
        for i, check in self._others:
            check(row[i])
        user, uid_text, state_text, exit_text, restarts, node_list, comment = self._facts(row)
        state, uid = parse_state(state_text), parse_count(uid_text)
        exit_code, exit_signal = parse_exit_code(exit_text)
        times = self._read_times(row, closed=state.name in CLOSED)
        started = times[2] is not None and node_list != NEVER_ASSIGNED
        sizes, overflow = read_sizes(self._sizes(row), started=started)
        extra = {name: row[i] for i, name in self._extra if row[i]}
        if overflow:
            extra["ReqMem"] = overflow
        values: tuple[Any, ...] = (  # in the order of JobRecord's fields: by name costs a microsecond a row
            raw_job_id,
            shown,
            user or _user_of(uid),
            state.name,
            *times,
            *place,
            *sizes,
            None if uid == NO_VALUE else uid,
            state.cancelled_by_uid,
            exit_code,
            exit_signal,
            parse_count(restarts) or 0,
            started,
            campaign_of(comment) if comment else "",
            *self._texts(row),
            extra,
        )
        return JobRecord(*values)

    def _read_times(self, row: Sequence[str], *, closed: bool) -> _Times:
        submit, eligible, start, end, elapsed_raw, elapsed, limit = self._times(row)
        submit_s, start_s, end_s = parse_time(submit), parse_time(start), parse_time(end)
        eligible_s = submit_s if eligible == submit else parse_time(eligible)
        elapsed_s = parse_count(elapsed_raw) if elapsed_raw else parse_duration(elapsed)
        if submit_s is None:
            raise RowError("no_submit_time", "A record without a submit time has no key")
        end_s = _end(start_s, end_s, elapsed_s) if closed else None
        if submit_s > self._latest_s or (end_s is not None and end_s > self._latest_s):
            detail = "Submitted or ended more than a day from now: is the clock or zone wrong?"
            raise RowError("future_date", detail)
        if elapsed_s is None:
            elapsed_s = end_s - start_s if end_s is not None and start_s is not None else 0
        return submit_s, eligible_s, start_s, end_s, elapsed_s, parse_duration(limit)


@lru_cache(maxsize=16384)  # eight texts that repeat from job to job, read as one
def read_sizes(texts: Sequence[str], *, started: bool) -> tuple[_Sizes, str]:
    """Choose what was allocated over what was asked for; the latter stands while nothing is allocated.

    `texts` are those of `SIZES`. The second value is a memory request that is no size at all.
    """
    nnodes, alloc_nodes, ncpus, alloc_cpus, req, alloc_tres, req_tres, req_mem = texts
    alloc, asked, memory = parse_tres(alloc_tres), parse_tres(req_tres), parse_memory(req_mem)
    alloc_node_count, alloc_cpu_count = parse_count(alloc_nodes), parse_count(alloc_cpus)
    nodes = _first(parse_count(nnodes), alloc_node_count, alloc.nodes)
    cpus = _first(parse_count(ncpus), alloc_cpu_count, alloc.cpus)
    req_cpus = _first(parse_count(req), asked.cpus, None)
    if not started:
        nodes, cpus = nodes or asked.nodes or 0, cpus or req_cpus
    mem_bytes = _memory(alloc, asked, memory, nodes, cpus)
    holder = alloc if started or alloc_tres else asked
    return (nodes, cpus, req_cpus, holder.gpus, holder.gpu_types, mem_bytes), (req_mem if memory.overflow else "")


def _place(shown: JobId) -> _Place:
    array = None if shown.array_task is None and shown.array_spec is None else shown.job
    het = None if shown.het_offset is None else shown.job
    return array, shown.array_task, shown.array_tasks, het, shown.het_offset


def _end(start_s: int | None, end_s: int | None, elapsed_s: int | None) -> int:
    if end_s is None and start_s is not None and elapsed_s is not None:
        end_s = start_s + elapsed_s
    if end_s is None:
        raise RowError("no_end_time", "The state says that the job has ended, but not when")
    if start_s is not None and end_s < start_s:
        raise RowError("end_before_start", f"Ended {start_s - end_s} s before its start")
    return end_s


def _memory(alloc: Tres, asked: Tres, request: MemorySize, nodes: int, cpus: int) -> int | None:
    """Total memory of a job: allocated, else asked for as a TRES, else the request times nodes or CPUs."""
    if alloc.mem_bytes is not None:
        return alloc.mem_bytes
    if asked.mem_bytes is not None or request.size_bytes is None:
        return asked.mem_bytes
    return request.size_bytes * {"node": nodes, "cpu": cpus}.get(request.per, 1)


def _first(first: int | None, second: int | None, third: int | None) -> int:
    if first is not None:
        return first
    return second if second is not None else third or 0


def _user_of(uid: int | None) -> str:
    if uid is None or uid == NO_VALUE:
        raise RowError("no_user", "A job without user name and uid belongs to nobody")
    return f"uid:{uid}"

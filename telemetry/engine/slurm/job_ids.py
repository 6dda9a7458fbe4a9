"""Job ids as Slurm displays them: plain, array task, pending array range, heterogeneous part, step."""

import re
from functools import lru_cache
from typing import NamedTuple

from telemetry.engine.slurm.errors import FieldError

MAX_ARRAY_TASKS = 4_000_001  # Slurm's own upper bound of MaxArraySize
_ID = re.compile(
    r"([0-9]{1,18})(?:_([0-9]{1,10})|_\[([0-9,:%.-]{1,65536})\]|\+([0-9]{1,6}))?(?:\.([A-Za-z0-9_+-]{1,64}))?"
)
_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")


class JobId(NamedTuple):
    """A displayed id: `job` is what stands before `_`, `+` and `.`; `array_tasks` is at least 1."""

    job: int
    array_task: int | None
    array_spec: str | None
    array_tasks: int
    het_offset: int | None
    step: str | None

    @property
    def is_plain(self) -> bool:
        """Say whether the id is a job's own number, without array, heterogeneous part or step."""
        return self.array_task is None and self.array_spec is None and self.het_offset is None and not self.step


def parse_job_id(text: str) -> JobId:
    """Read `123`, `123_4`, `123_[1-3,5%2]`, `123+0`, `123.batch`, `123_4.extern`. Raises `bad_job_id`."""
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return JobId(int(text), None, None, 1, None, None)
    match = _ID.fullmatch(text)
    if match is None:
        raise FieldError("bad_job_id", f"{text[:60]!r} is not a job id")
    job, task, spec, het, step = match.groups()
    return JobId(
        job=int(job),
        array_task=None if task is None else int(task),
        array_spec=spec,
        array_tasks=1 if spec is None else count_array_tasks(spec),
        het_offset=None if het is None else int(het),
        step=step,
    )


@lru_cache(maxsize=1024)
def count_array_tasks(spec: str) -> int:
    """Count the tasks of an array range such as `1-3,5,10-20:2%4` without listing them.

    A list that Slurm cut with `...` counts as what is shown. Raises FieldError `bad_job_id` beyond
    MAX_ARRAY_TASKS tasks.
    """
    total = sum(len(tasks) for tasks in _ranges(spec))
    if not 1 <= total <= MAX_ARRAY_TASKS:
        raise FieldError("bad_job_id", f"array range {spec[:60]!r} stands for {total} tasks")
    return total


@lru_cache(maxsize=1024)
def _ranges(spec: str) -> tuple[range, ...]:
    ranges = []
    for item in spec.partition("%")[0].split(","):
        if item == "...":
            continue
        match = _RANGE.fullmatch(item)
        if match is None or (match[3] is not None and int(match[3]) == 0):
            raise FieldError("bad_job_id", f"{item[:60]!r} is not an array range")
        first = int(match[1])
        ranges.append(range(first, int(match[2] or first) + 1, int(match[3] or 1)))
    return tuple(ranges)


def holds_any(spec: str, tasks: str) -> bool:
    """Say whether two array ranges have a task in common. Raises `bad_job_id`.

    Ten thousand tasks are each looked for in ten thousand: those of the shorter one are, in the ranges of the longer.
    """
    fewer, more = sorted((_numbers(spec), _numbers(tasks)), key=lambda numbers: numbers.size)
    return any(more.holds(task) for part in fewer.ranges for task in part)


def holds_task(spec: str, task: int) -> bool:
    """Say whether a task is in an array range. Raises `bad_job_id`."""
    return _numbers(spec).holds(task)


class _Numbers(NamedTuple):
    """The tasks of an array range: those that stand alone, and the ranges that are longer."""

    size: int
    ranges: tuple[range, ...]
    single: frozenset[int]
    longer: tuple[range, ...]

    def holds(self, task: int) -> bool:
        return task in self.single or any(task in part for part in self.longer)


@lru_cache(maxsize=1024)
def _numbers(spec: str) -> _Numbers:
    ranges = _ranges(spec)
    single = frozenset(part[0] for part in ranges if len(part) == 1)
    return _Numbers(sum(map(len, ranges)), ranges, single, tuple(part for part in ranges if len(part) > 1))

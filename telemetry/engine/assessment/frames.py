"""From a block of lines to one frame of its jobs, whichever way each line was read, without what no sum can hold."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Final

import polars as pl

from telemetry.engine.slurm.bulk import Block
from telemetry.engine.slurm.bulk_columns import Tail
from telemetry.engine.slurm.columns import Plan
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.records import EARLIEST_S, LARGEST_COUNT, LONGEST_S, JobRecord, Rejected
from telemetry.engine.slurm.rows import USED
from telemetry.engine.usage import DAY_S

_INT: Final = pl.Int64()
_TEXT: Final = pl.String()
SCHEMA: Final[dict[str, pl.DataType]] = {
    "raw_job_id": _INT, "submit_s": _INT, "start_s": _INT, "end_s": _INT, "elapsed_s": _INT, "timelimit_s": _INT,
    "array_tasks": _INT, "nodes": _INT, "cpus": _INT, "gpus": _INT, "restarts": _INT, "started": pl.Boolean(),
    "exit_code": _INT, "exit_signal": _INT,
    "state": _TEXT, "user": _TEXT, "account": _TEXT, "cluster": _TEXT, "partition": _TEXT, "job_name": _TEXT,
    "submit_line": _TEXT, "work_dir": _TEXT, "agent": pl.Boolean(),
}  # fmt: skip
# Columns of a header that a record holds under a name of its own; what is not here is in `extra`.
_FIELDS: Final = {
    "jobname": "job_name", "submitline": "submit_line", "workdir": "work_dir", "comment": "comment", "user": "user",
    "account": "account", "group": "group", "cluster": "cluster", "partition": "partition", "qos": "qos",
    "reason": "reason", "nodelist": "node_list",
}  # fmt: skip
_IN_TAIL: Final = "comment"


@dataclass(frozen=True, slots=True)
class Marker:
    """What marks a job as an agent's: a column whose text matches a shell pattern (`*`, `?`, `[…]`), in this case."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of agents: login names, all of whose jobs are an agent's, and markers, each enough by itself."""

    users: frozenset[str] = frozenset()
    markers: tuple[Marker, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether no job can be told to be an agent's."""
        return not self.users and not self.markers


@dataclass(slots=True)
class Lines:
    """How the lines of the files were read: records, steps, and those set aside, by the code of the reason.

    `others` are the clusters of those that were set aside because another was asked for, `warnings` what is to be said
    about the reading itself.
    """

    jobs: int = 0
    steps: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    warnings: set[str] = field(default_factory=set)

    def reject(self, code: str, count: int) -> None:
        """Count records that were set aside."""
        if count:
            self.rejected[code] += count


class Framer:
    """Make the frame of each block of one file: `SCHEMA`'s columns, without what no sum can hold."""

    def __init__(self, plan: Plan, known: Known, lines: Lines, *, cluster: str) -> None:
        """Prepare for a header. Errors: `FormatError` `no_marker_column` when a marker's column cannot be read."""
        self._lines, self._cluster, self._users = lines, cluster, known.users
        names = {name.lower(): name for name in plan.names if name.lower() not in USED - _FIELDS.keys()}
        self._markers: list[tuple[str, Callable[[str], object]]] = []
        for marker in known.markers:
            key = marker.column.lower()
            if key not in names:
                raise FormatError(
                    "no_marker_column", f"There is no column {marker.column} whose text could mark agents' jobs.",
                    missing=(marker.column,),
                    remedy=f"Add {marker.column} to sacct's --format, or name a column of text, as Comment.",
                )  # fmt: skip
            place = _FIELDS.get(key) or names[key]
            self._markers.append((place, re.compile(translate(marker.pattern)).match))

    def frame(self, block: Block) -> pl.DataFrame:
        """Return the jobs of a block, and count its other lines."""
        frames = []
        if block.columns is not None:
            self._lines.steps += len(block.columns.steps)
            frames.append(self._of_columns(block.columns.jobs, block.columns.tails))
        frames.append(self._of_records(self._sorted_out(block)))
        jobs = pl.concat(frames)
        is_other = self._is_other_cluster()
        if self._cluster:
            self._lines.others.update(dict(jobs.filter(is_other)["cluster"].value_counts().iter_rows()))
        jobs = self._without("other_cluster", jobs, is_other)
        for code, is_odd in _ODDITIES.items():
            jobs = self._without(code, jobs, is_odd)
        self._lines.jobs += len(jobs)
        return jobs

    def _sorted_out(self, block: Block) -> list[JobRecord]:
        """Return the records among the outcomes that were read one by one."""
        records = []
        for _, outcome in block.odd:
            if isinstance(outcome, JobRecord):
                records.append(outcome)
            elif isinstance(outcome, Rejected):
                self._lines.reject(outcome.reason_code, 1)
            else:
                self._lines.steps += 1
        return records

    def _without(self, code: str, jobs: pl.DataFrame, odd: pl.Expr) -> pl.DataFrame:
        kept = jobs.filter(~odd)
        self._lines.reject(code, len(jobs) - len(kept))
        return kept

    def _is_other_cluster(self) -> pl.Expr:
        """Say whether a job names another cluster than the one asked for; Slurm's names have no case."""
        if not self._cluster:
            return pl.lit(value=False)
        named = pl.col("cluster")
        return (named != "") & (named.str.to_lowercase() != self._cluster.lower())

    def _of_columns(self, jobs: pl.DataFrame, tails: Sequence[Tail]) -> pl.DataFrame:
        agent = pl.col("user").is_in(sorted(self._users))
        for place, matches in self._markers:
            if place in jobs.columns:
                told = [text for text in jobs[place].unique().to_list() if matches(text)]
                agent = agent | pl.col(place).is_in(told)
            else:
                told_tails = [at for at, tail in enumerate(tails) if matches(_told(tail, place))]
                agent = agent | pl.col("tail").is_in(told_tails)
        named = jobs.with_columns(agent.alias("agent"), pl.lit(1, _INT).alias("array_tasks"))
        return named.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())

    def _of_records(self, records: Iterable[JobRecord]) -> pl.DataFrame:
        """Return the frame of single records; numbers beyond 64 bits become the largest one, which no sum takes."""
        rows = [
            [_bounded(getattr(record, name)) for name in SCHEMA if name != "agent"] + [self._is_agent(record)]
            for record in records
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def _is_agent(self, record: JobRecord) -> bool:
        return record.user in self._users or any(
            matches(getattr(record, place) if place in JobRecord._fields else record.extra.get(place, ""))
            for place, matches in self._markers
        )


def _told(tail: Tail, place: str) -> str:
    return tail.comment if place == _IN_TAIL else tail.extra.get(place, "")


def _bounded(value: object) -> object:
    return min(value, 2**63 - 1) if isinstance(value, int) else value


def _oddities() -> dict[str, pl.Expr]:
    """Return which records are set aside although they read well, by the code of the reason."""
    start = pl.when("started").then("start_s")
    counts = pl.max_horizontal("nodes", "cpus", "gpus", "array_tasks")
    longest = pl.min_horizontal(pl.coalesce(pl.col("end_s") - start + DAY_S, pl.lit(LONGEST_S)), pl.lit(LONGEST_S))
    return {
        "out_of_range": (counts > LARGEST_COUNT) | (pl.col("elapsed_s") > longest),
        "past_date": pl.min_horizontal("submit_s", start, "end_s") < EARLIEST_S,
    }


_ODDITIES: Final = _oddities()

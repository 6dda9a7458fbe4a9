"""Many lines of sacct text at once, in columns: the hot path of a large file.

A line is read here only when it is plain: as many separators as columns, and in each typed column a text that the
column's own parser (`values.py`) takes or, for times and job ids, that has the one usual form. All others are left to
`SacctReader`, which says what they are. So whatever is read here, it reads the same; a property test holds both to it.

Columns repeat themselves: each distinct text is parsed once a block, by the parser that reads single rows.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import polars as pl

from telemetry.engine.slurm.columns import FILLED, Plan
from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.lines import MAX_LINE_BYTES
from telemetry.engine.slurm.records import NEVER_ASSIGNED, JobRecord, campaign_of, digest_bytes, told_extra
from telemetry.engine.slurm.rows import CLOSED, FUTURE_SLACK_S, NO_VALUE, SIZES, USED, read_sizes
from telemetry.engine.slurm.values import (
    UNSET_TIMES,
    parse_count,
    parse_duration,
    parse_exit_code,
    parse_state,
)

_TIME: Final = "^[12][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$"
_RAW_ID: Final = r"^[0-9]{1,18}$"
_TASK_ID: Final = r"^[0-9]{1,18}_[0-9]{1,10}$"
_STEP: Final = r"^[0-9]{1,18}(?:_[0-9]{1,10})?\.[A-Za-z0-9_+-]{1,64}$"
_STEP_RAW: Final = r"^[0-9]{1,18}(?:\.[A-Za-z0-9_+-]{1,64})?$"
_SPAN: Final = "^(?:[0-9]{1,6}-)?[0-9]{2}:[0-9]{2}:[0-9]{2}$"
_ELAPSED: Final = ("@elapsedraw", "@elapsed")
_TIMES: Final = ("submit", "eligible", "start", "end")
_TEXTS: Final = {
    "jobid": "job_id", "user": "user", "account": "account", "group": "group", "cluster": "cluster",
    "partition": "partition", "qos": "qos", "nodelist": "node_list", "jobname": "job_name", "reason": "reason",
    "submitline": "submit_line", "workdir": "work_dir",
}  # fmt: skip
_NEEDED: Final = frozenset({"jobid", "jobidraw", "user", "state", "submit", "start", "end"})
_MAX: Final = 2**63 - 1
_INT: Final = pl.Int64()
_TEXT: Final = pl.String()
_DEFAULTS: Final = JobRecord._field_defaults
_Parse: TypeAlias = Callable[..., tuple[Any, ...]]


class Tail(NamedTuple):
    """What few jobs have of their own: campaign, comment, GPU types and the columns without a place."""

    campaign: str
    comment: str
    gpu_types: tuple[str, ...]
    extra: Mapping[str, str]


_TOLD_TAILS: Final[Mapping[str, Callable[[Tail], str]]] = {
    "campaign": lambda tail: tail.campaign,
    "gpu_types": lambda tail: str(tail.gpu_types),
    "comment": lambda tail: tail.comment + told_extra(tail.extra),  # the last field, and what follows it
}


@dataclass(frozen=True, slots=True)
class Columns:
    """The plain lines of a block. `jobs`: one row a job, in the order of `line` (its number), columns named as
    the fields of `JobRecord`; `tail` is an index into `tails`. `steps`: the lines that are steps."""

    jobs: pl.DataFrame
    tails: Sequence[Tail]
    steps: Sequence[int]

    def records(self, rows: pl.DataFrame | None = None) -> list[JobRecord]:
        """Return the records of all jobs, or of some rows of `jobs`, in their order."""
        jobs = self.jobs if rows is None else rows
        return [self._record(row) for row in jobs.iter_rows(named=True)]

    def numbered(self, rows: pl.DataFrame) -> list[tuple[int, JobRecord]]:
        """Return the records of some rows of `jobs`, each with its line."""
        return list(zip(rows["line"].to_list(), self.records(rows), strict=True))

    def digests(self, jobs: pl.DataFrame) -> pl.Series:
        """Return `content_digest` of some rows of `jobs`, without making records of them."""
        told: dict[str, pl.Series | pl.Expr] = {
            name: pl.Series([text(each) for each in self.tails], dtype=_TEXT).gather(jobs["tail"])
            for name, text in _TOLD_TAILS.items()
        }
        told["started"] = pl.when("started").then(pl.lit("True")).otherwise(pl.lit("False"))
        told |= {name: pl.lit(str(_DEFAULTS[name])) for name in _DEFAULTS.keys() - jobs.columns - told.keys()}
        # No text of a plain line has a newline. Hashed as bytes, a row costs half of what it does by way of `str`.
        lines = io.BytesIO()
        jobs.select(told.get(name, pl.col(name)).alias(name) for name in JobRecord._fields[:-1]).write_csv(
            lines, include_header=False, separator="\x1f", quote_style="never", null_value="None"
        )
        digests = map(digest_bytes, lines.getvalue().split(b"\n")[:-1])
        return pl.Series("digest", list(digests), dtype=pl.Binary).bin.reinterpret(dtype=_INT, endianness="big")

    def _record(self, row: dict[str, Any]) -> JobRecord:
        tail = self.tails[row.pop("tail")]
        del row["line"]
        return JobRecord(**row, **tail._asdict())


class ColumnReader:
    """Read blocks of lines under one plan; `now_s` (UTC epoch) is what "in the future" is measured by."""

    def __init__(self, plan: Plan, header: str, *, now_s: int) -> None:
        self._plan, self._header, self._latest_s = plan, header, now_s + FUTURE_SLACK_S
        # Columns as they came begin with "@": no header can take the name of a column that is made here.
        self._names = [f"@{name.lower()}" for name in plan.names]
        self._unused = [i for key, i in sorted(plan.index.items(), key=lambda item: item[1]) if key not in USED]

    @staticmethod
    def fits(plan: Plan) -> bool:
        """Say whether files of this plan have the columns that plain lines are known by."""
        return plan.index.keys() >= _NEEDED and "" not in plan.index

    def read(self, lines: pl.Series) -> Columns:
        """Read the plain ones of some lines (without their ends)."""
        cells = self._cut(lines)
        is_step = pl.col("@jobid").str.contains(".", literal=True)
        steps = self._read_steps(cells.filter(is_step))
        # What is not plain is marked, and left out once at the end: each time copies every column.
        jobs = self._read_ids(cells.with_columns((~is_step).alias("plain")))
        for i in self._unused:
            jobs = self._checked(jobs, i)
        return self._finish(self._read_sizes(self._read_times(self._read_facts(jobs))), steps)

    def _cut(self, lines: pl.Series) -> pl.DataFrame:
        """Cut lines of the right number of separators into named columns; those that are not there read ""."""
        text = pl.col("text")
        plain = (
            (text.str.count_matches("|", literal=True) == self._plan.width - 1)
            & ~text.str.contains("\ufffd", literal=True)
            & ~text.str.contains("\0", literal=True)
            & (text.str.len_bytes() <= MAX_LINE_BYTES - 1)
            & (text != self._header)
        )
        cells, index = text.str.split_exact("|", self._plan.width - 1), self._plan.index
        missing = [f"@{key}" for key in sorted(USED - index.keys())]
        return (
            lines.alias("text").to_frame().with_row_index("line").filter(plain)
            .select("line", cells.struct.rename_fields(self._names).struct.unnest())
            .with_columns(pl.lit("").alias(name) for name in missing)
            .filter(pl.all_horizontal(pl.col(f"@{key}") != "" for key in sorted(FILLED & index.keys())))
        )  # fmt: skip

    def _read_steps(self, cells: pl.DataFrame) -> list[int]:
        if cells.is_empty():
            return []
        plain = pl.col("@jobid").str.contains(_STEP) & pl.col("@jobidraw").str.contains(_STEP_RAW)
        times = [name for name in _TIMES if name in self._plan.index]
        steps = cells.with_columns(_instant(name) for name in times)
        steps = steps.with_columns(pl.all_horizontal(plain, *map(_is_time, times)).alias("plain"))
        read = {"jobid", "jobidraw", *times}
        for i in sorted(i for key, i in self._plan.index.items() if key not in read):
            steps = self._checked(steps, i)
        return steps.filter("plain")["line"].to_list()

    def _checked(self, cells: pl.DataFrame, i: int) -> pl.DataFrame:
        """Mark the rows of which a telling column that is not read is malformed."""
        check = self._plan.checks[i] if i in self._plan.strong else None
        if check is None:
            return cells
        name = self._names[i]
        good = [text for text in cells[name].unique().to_list() if _passes(check, text)]
        return _mark(cells, pl.col(name).is_in(good))

    def _read_ids(self, cells: pl.DataFrame) -> pl.DataFrame:
        shown, raw = pl.col("@jobid"), pl.col("@jobidraw")
        plain = raw.str.contains(_RAW_ID) & ((shown == raw) | shown.str.contains(_TASK_ID)) & (pl.col("@user") != "")
        job, task = (shown.str.extract(r"^([0-9]{1,18})_([0-9]{1,10})$", i) for i in (1, 2))
        numbers = {"raw_job_id": raw, "array_job_id": job, "array_task": task}
        return _mark(cells, plain).with_columns(
            text.cast(_INT, strict=False).alias(name) for name, text in numbers.items()
        )

    def _read_facts(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Read what repeats: state, exit code, uid, restarts, durations."""

        def state(text: str) -> tuple[Any, ...]:
            found = parse_state(text)
            return found.name, found.cancelled_by_uid, found.name in CLOSED

        def uid(text: str) -> tuple[Any, ...]:
            number = parse_count(text)
            return (None if number == NO_VALUE else number,)

        cells = _join(cells, ["@state"], state, {"state": _TEXT, "cancelled_by_uid": _INT, "closed": pl.Boolean()})
        cells = _join(cells, ["@exitcode"], parse_exit_code, {"exit_code": _INT, "exit_signal": _INT})
        cells = _join(cells, ["@uid"], uid, {"uid": _INT})
        cells = _join(cells, ["@restarts"], lambda text: (parse_count(text) or 0,), {"restarts": _INT})
        cells = self._read_elapsed(cells)
        return _join(cells, ["@timelimit"], lambda text: (parse_duration(text),), {"timelimit_s": _INT})

    def _read_elapsed(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Read how long jobs ran: nearly each another time, so that those in a usual form are worked out in columns."""
        raw, text = pl.col("@elapsedraw"), pl.col("@elapsed")
        told = (
            pl.when(raw.str.contains(_RAW_ID)).then(raw.cast(_INT, strict=False))
            .when((raw == "") & text.str.contains(_SPAN)).then(_span(text))
        )  # fmt: skip
        left = [pl.when(pl.col("told").is_null()).then(name).otherwise(pl.lit("")).alias(name) for name in _ELAPSED]
        cells = cells.with_columns(told.alias("told")).with_columns(left)
        cells = _join(cells, _ELAPSED, _elapsed, {"elapsed_other": _INT})
        return cells.with_columns(pl.coalesce("told", "elapsed_other").alias("elapsed_known"))

    def _read_times(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Read the instants, and mark what no job may say (those rows get their reason elsewhere)."""
        cells = cells.with_columns(map(_instant, _TIMES))
        plain = pl.all_horizontal(map(_is_time, _TIMES))
        submit, start, ended = pl.col("submit_s"), pl.col("start_s"), pl.col("closed")
        end = pl.when(ended).then(pl.coalesce(pl.col("end_s"), start + pl.col("elapsed_known")))
        cells = _mark(cells, plain).with_columns(end.alias("end_s"))
        cells = _mark(
            cells,
            submit.is_not_null() & (submit <= self._latest_s)
            & (~ended | (pl.col("end_s").is_not_null() & (pl.col("end_s") <= self._latest_s)))
            & (~ended | start.is_null() | (pl.col("end_s") >= start)),
        )  # fmt: skip
        elapsed = pl.coalesce(pl.col("elapsed_known"), pl.col("end_s") - start, pl.lit(0))
        started = start.is_not_null() & (pl.col("@nodelist") != NEVER_ASSIGNED)
        return cells.with_columns(elapsed.alias("elapsed_s"), started.alias("started"))

    def _read_sizes(self, cells: pl.DataFrame) -> pl.DataFrame:
        def sizes(*texts: Any) -> tuple[Any, ...]:
            (nodes, cpus, req_cpus, gpus, types, mem_bytes), overflow = read_sizes(texts[:-1], started=texts[-1])
            return nodes, cpus, req_cpus, gpus, ",".join(types), mem_bytes, overflow

        schema: dict[str, pl.DataType] = {name: _INT for name in ("nodes", "cpus", "req_cpus", "gpus")}
        schema |= {"gpu_types": _TEXT, "mem_bytes": _INT, "overflow": _TEXT}
        return _join(cells, [*(f"@{key}" for key in SIZES), "started"], sizes, schema)

    def _finish(self, jobs: pl.DataFrame, steps: Sequence[int]) -> Columns:
        """Collect the tails, and name everything as `JobRecord` does."""
        names = [self._names[i] for i in self._unused]
        tails: list[Tail] = []

        def tail(comment: str, types: str, overflow: str, *extra: str) -> tuple[int]:
            kept = {self._plan.names[i]: text for i, text in zip(self._unused, extra, strict=True) if text}
            if overflow:
                kept["ReqMem"] = overflow
            tails.append(Tail(campaign_of(comment), comment, tuple(types.split(",")) if types else (), kept))
            return (len(tails) - 1,)

        jobs = _join(jobs, ["@comment", "gpu_types", "overflow", *names], tail, {"tail": _INT})
        return Columns(jobs.filter("plain").select("line", "tail", *_fields()), tails, steps)


def _fields() -> list[pl.Expr]:
    """Return the columns of a job by the names of `JobRecord`, those of the tail excepted."""
    same = (
        "raw_job_id", "submit_s", "eligible_s", "start_s", "end_s", "elapsed_s", "timelimit_s", "array_job_id",
        "array_task", "nodes", "cpus", "req_cpus", "gpus", "mem_bytes", "cancelled_by_uid", "exit_code", "exit_signal",
        "started", "state", "uid", "restarts",
    )  # fmt: skip
    return [*map(pl.col, same), *(pl.col(f"@{old}").alias(new) for old, new in _TEXTS.items())]


def _join(cells: pl.DataFrame, names: Sequence[str], parse: _Parse, made: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Add what `parse` makes of each distinct combination of some columns; mark the rows that it refuses."""
    parsed = []
    for texts in cells.select(names).unique().iter_rows():
        try:
            values = parse(*texts)
        except FieldError:
            continue
        if all(value <= _MAX for value in values if isinstance(value, int)):
            parsed.append((*texts, *values, True))
    schema = {name: cells.schema[name] for name in names} | dict(made) | {"known": pl.Boolean()}
    table = pl.DataFrame(parsed, schema=schema, orient="row")
    found = cells.select(names).join(table, on=list(names), how="left", maintain_order="left").drop(names)
    return _mark(cells.hstack(found), pl.col("known")).drop("known")


def _mark(cells: pl.DataFrame, plain: pl.Expr) -> pl.DataFrame:
    """Let only those rows be plain still of which this is true."""
    return cells.with_columns((pl.col("plain") & plain.fill_null(value=False)).alias("plain"))


def _elapsed(raw: str, text: str) -> tuple[int | None]:
    return (parse_count(raw) if raw else parse_duration(text),)


def _span(text: pl.Expr) -> pl.Expr:
    """Work out the seconds of texts of the form `_SPAN`, as `parse_duration` does; null for others."""
    days = pl.when(text.str.len_bytes() > 8).then(text.str.head(-9)).otherwise(pl.lit("0"))
    hours, minutes, seconds = (text.str.slice(at, 2) for at in (-8, -5, -2))
    parts = ((days, 86_400), (hours, 3600), (minutes, 60), (seconds, 1))
    return pl.sum_horizontal(part.cast(_INT, strict=False) * size for part, size in parts)


def _passes(check: Callable[[str], object], text: str) -> bool:
    try:
        check(text)
    except FieldError:
        return False
    return True


def _instant(name: str) -> pl.Expr:
    parsed = pl.col(f"@{name}").str.strptime(pl.Datetime("ms"), "%Y-%m-%dT%H:%M:%S", strict=False)
    return parsed.dt.epoch("s").cast(_INT).alias(f"{name}_s")


def _is_time(name: str) -> pl.Expr:
    """Say whether a text is an instant that `_instant` read, or stands for none."""
    text = pl.col(f"@{name}")
    return (text.str.contains(_TIME) & pl.col(f"{name}_s").is_not_null()) | text.is_in(sorted(UNSET_TIMES))

"""Streaming reader of what `sacct --json` prints and of slurmrestd's `slurmdb/jobs`: the same outcomes as its text.

Times are epoch seconds and need no zone. What is not in it: the uid of the user and of who cancelled; up to 22.05 also
the submit line, restarts, and true exit codes (a job that ended with 3 is written with `return_code` 0; signals are
true). It is made for narrow questions: a job takes 5 to 8 KB, and reads five times slower than the same text.
"""

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, Final, cast

from telemetry.engine.slurm.documents import (
    Dialect,
    at,
    nearest_dialect,
    plain_number,
    plain_text,
    read_envelope,
    tres_amounts,
)
from telemetry.engine.slurm.errors import FieldError, FormatError
from telemetry.engine.slurm.job_columns import (
    PLAN,
    build_record,
    minutes_text,
    reject,
    shown_id,
    state_text,
    time_text,
    tres_text,
)
from telemetry.engine.slurm.job_ids import parse_job_id
from telemetry.engine.slurm.json_stream import JsonStream
from telemetry.engine.slurm.lines import Source, open_source
from telemetry.engine.slurm.records import Outcome, StepSeen
from telemetry.engine.slurm.rows import RowBuilder

KEY: Final = "jobs"


class SacctJsonReader:
    """Iterate over the outcomes of a document; `header`, `offset` and `next_line` are what a resume needs.

    `header` is the dialect. `next_line` counts records from 1, and so do `line`, the record of the outcome that was
    yielded last, and the `line_no` of what is set aside.
    `warnings` is what is to be said about the reading; a resumed one has none.
    """

    def __init__(
        self, source: Source, *, now_s: int, header: str | None = None, start_line: int = 1, offset: int = 0
    ) -> None:
        """Skim the document once, for which version wrote it may stand at its end; with a `header`, go on at `offset`.

        A source that cannot be read twice is copied to a temporary file first. Errors: FormatError, those of
        `JsonStream.skim` and `documents.read_envelope`: then nothing of it is taken.
        """
        stream = open_source(source)
        self.warnings: tuple[str, ...] = ()
        self._own: BinaryIO | None = None
        if header is None:
            stream = stream if stream.seekable() else self._copy(stream)
            header, offset = self._skim(stream)
        self.header, self.offset, self.line, self.next_line = header, offset, start_line, start_line
        self._dialect = _dialect_of(header)
        self._builder = RowBuilder(PLAN, now_s=now_s)
        self._cursor = JsonStream(stream, offset=offset)

    def __iter__(self) -> Iterator[Outcome]:
        """Yield for each job its JobRecord or Rejected, then a StepSeen for each of its steps."""
        try:
            for record, text in self._cursor.records():
                outcomes, self.line = self._read(record, text), self.next_line
                yield from outcomes[:-1]
                self.offset, self.next_line = self._cursor.offset, self.next_line + 1
                yield outcomes[-1]
        finally:
            self._close()

    def _skim(self, stream: BinaryIO) -> tuple[str, int]:
        """Find the version and the first job; the stream stands there then."""
        start = stream.tell()
        try:
            skim = JsonStream(stream).skim(KEY)
            envelope = read_envelope(skim.members, is_empty=not skim.records)
        except FormatError:
            self._close()
            raise
        stream.seek(start + skim.offset)
        self.warnings = envelope.warnings
        return f"v0.0.{envelope.dialect.version}", skim.offset

    def _copy(self, stream: BinaryIO) -> BinaryIO:
        self._own = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed with the reading
        shutil.copyfileobj(stream, self._own)
        self._own.seek(0)
        return self._own

    def _close(self) -> None:
        if self._own is not None:
            self._own.close()

    def _read(self, record: object, text: str) -> list[Outcome]:
        try:
            columns = write_columns(record, self._dialect)
            steps = [read_step(step, self._dialect) for step in _list(at(record, "steps"))]
        except FieldError as error:
            return [reject(error, self.next_line, text)]
        return [build_record(self._builder, columns, self.next_line, text), *steps]


def read_sacct_json(source: Source, *, now_s: int) -> Iterator[Outcome]:
    """Yield the outcomes of a whole document. In memory: one job and its text, at most 64 MiB of that.

    Reads it twice, for the version stands behind the jobs since 23.02: a source that cannot be read twice is copied to
    a temporary file. A job that is none becomes Rejected; nothing is lost. Errors: as `SacctJsonReader`.
    """
    return iter(SacctJsonReader(source, now_s=now_s))


def write_columns(job: object, dialect: Dialect) -> dict[str, str]:
    """Write a job of Slurm's JSON in the columns of sacct. Raises FieldError where it is not of its dialect."""
    text, number = partial(_text, job), partial(_number, job)
    array, het = at(job, "array"), at(job, "het")
    task, offset = dialect.number(at(array, "task_id")), dialect.number(at(het, "job_offset"))
    columns = {
        "JobID": shown_id(
            number("job_id") or 0, array=plain_number(at(array, "job_id")), task=task,
            tasks=plain_text(at(array, "task")), het=plain_number(at(het, "job_id")), offset=offset,
        ),
        "JobIDRaw": str(number("job_id") or ""),
        "User": text("user"),
        "State": state_text(dialect.words(at(job, "state.current"))),
        "ExitCode": _exit_code(at(job, "exit_code"), dialect),
        "NodeList": text("nodes"),
        "Comment": text("comment.job"),
        "AdminComment": text("comment.administrator"),
        "Submit": time_text(number("time.submission")),
        "Eligible": time_text(number("time.eligible")),
        "Start": time_text(number("time.start")),
        "End": time_text(number("time.end")),
        "ElapsedRaw": str(number("time.elapsed") or 0),
        "Timelimit": minutes_text(dialect.number(at(job, "time.limit"))),
        "NNodes": str(number("allocation_nodes") or 0),
        "ReqCPUS": str(number("required.CPUs") or ""),
        "AllocTRES": tres_text(tres_amounts(at(job, "tres.allocated"))),
        "ReqTRES": tres_text(tres_amounts(at(job, "tres.requested"))),
        "Account": text("account"),
        "Group": text("group"),
        "Cluster": text("cluster"),
        "Partition": text("partition"),
        "QOS": text("qos"),
        "JobName": text("name"),
        "WorkDir": text("working_directory"),
        "Reason": text("state.reason"),
    }  # fmt: skip
    return columns | _later_columns(job, dialect)


def _later_columns(job: object, dialect: Dialect) -> dict[str, str]:
    """Write what the plain dialects do not say."""
    if dialect.is_plain:
        return {}
    columns = {"SubmitLine": _text(job, "submit_line"), "ReqMem": _memory(at(job, "required"), dialect)}
    if dialect.tells_restarts:
        columns["Restarts"] = str(_number(job, "restart_cnt") or 0)
    return columns


def read_step(step: object, dialect: Dialect) -> StepSeen:
    """Read which step of which job it is. Raises FieldError `bad_job_id`."""
    if dialect.is_plain:
        job, name = _number(step, "step.job_id"), str(at(step, "step.id"))  # a word, or a number
    else:
        raw, _, name = _text(step, "step.id").rpartition(".")
        job = parse_job_id(raw).job
    if not job or not name:
        raise FieldError("bad_job_id", "A step without a job or a name")
    return StepSeen(job, name)


def _exit_code(value: object, dialect: Dialect) -> str:
    if dialect.is_plain:
        signal = value.get("signal") if isinstance(value, dict) else None
        code, number = plain_number(at(value, "return_code")), at(signal, "signal_id") if signal else None
    else:
        code, number = dialect.number(at(value, "return_code")), dialect.number(at(value, "signal.id"))
    return f"{code or 0}:{number or 0}"


def _memory(required: object, dialect: Dialect) -> str:
    """Write the memory asked for, in MiB; 0 is all that a node has, which only the TRES say."""
    for name, unit in (("memory_per_cpu", "c"), ("memory_per_node", "n")):
        if amount := dialect.number(at(required, name)):
            return f"{amount}M{unit}"
    return ""


def _text(record: object, path: str) -> str:
    return plain_text(at(record, path))


def _number(record: object, path: str) -> int | None:
    return plain_number(at(record, path))


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise FieldError("bad_record", f"{value!r:.60} is no list of steps")
    return value


def _dialect_of(header: str) -> Dialect:
    try:
        return nearest_dialect(int(header.removeprefix("v0.0.")))
    except ValueError as error:
        raise FormatError("no_meta", f"{header[:60]!r} is no version of Slurm's data parser.") from error

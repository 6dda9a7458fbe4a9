"""Streaming reader of the headerless 26-column form that Open XDMoD's `xdmod-slurm-helper` writes.

One job a line, `|`-separated, times in UTC, the job name last: cut at the first 25 separators, so that the
name may hold more of them. Lines are records; a line that is none is rejected by itself.
"""

from collections.abc import Iterator

from telemetry.engine.slurm.columns import compile_plan, first_fault
from telemetry.engine.slurm.errors import FieldError, FormatError, RowError
from telemetry.engine.slurm.lines import Line, Source, open_source, read_lines
from telemetry.engine.slurm.records import Outcome, Rejected
from telemetry.engine.slurm.rows import RowBuilder
from telemetry.engine.slurm.sacct_text import FAULTS

COLUMNS = (
    "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|GID|User|UID|Submit|Eligible|Start|End|Elapsed|ExitCode|"
    "State|NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|Timelimit|NodeList|JobName"
)


class XdmodReader:
    """Iterate over the outcomes of a stream; `offset` and `next_line` are what a resume needs.

    `line` is the number of the line that was yielded last.
    """

    header: str = ""

    def __init__(self, source: Source, *, now_s: int, start_line: int = 1, offset: int = 0) -> None:
        """Open the stream, which stands at byte `offset`; nothing is read before the first outcome."""
        self.offset, self.line, self.next_line = offset, start_line, start_line
        self._plan = compile_plan(COLUMNS)
        self._builder = RowBuilder(self._plan, now_s=now_s)
        self._lines = read_lines(open_source(source), first_number=start_line, offset=offset)

    def __iter__(self) -> Iterator[Outcome]:
        """Yield JobRecord, StepSeen and Rejected in the order of the file.

        Raises FormatError `not_text` or `wrong_columns` when the first line is of another format.
        """
        for line in self._lines:
            outcome = self._read(line)
            if line.number == 1 and isinstance(outcome, Rejected):
                self._refuse_other_formats(line)
            self.offset, self.line, self.next_line = line.end, line.number, line.number + 1
            if outcome is not None:
                yield outcome

    def _read(self, line: Line) -> Outcome | None:
        text = line.text.removesuffix("\r").removeprefix("\ufeff" if line.number == 1 else "")
        if line.fault or not line.whole:
            code = line.fault or "truncated_last_line"
            return Rejected(line.number, code, FAULTS[code], text)
        if not text:
            return None
        fields = text.split("|", self._plan.width - 1)
        if len(fields) < self._plan.width:
            detail = f"{len(fields)} values for {self._plan.width} columns"
            return Rejected(line.number, "too_few_columns", detail, text)
        fault = first_fault(self._plan, fields) if "\ufffd" in text else None
        try:
            return self._builder.build(fields) if fault is None else self._reject(line, fault)
        except FieldError:
            return self._reject(line, first_fault(self._plan, fields))
        except RowError as error:
            return self._reject(line, error)

    def _reject(self, line: Line, error: FieldError | RowError | None) -> Rejected:
        code, detail = (error.code, error.detail) if error else ("no_valid_split", "Not a record")
        return Rejected(line.number, code, detail, line.text)

    def _refuse_other_formats(self, line: Line) -> None:
        if line.fault:
            raise FormatError("not_text", "This is not text: binary data or an endless first line.")
        found = line.text.count("|") + 1
        if found < self._plan.width:
            raise FormatError(
                "wrong_columns",
                f"This is not the 26-column form: the first line has {found} columns.",
                remedy="For a file with a header line use --format sacct.",
            )

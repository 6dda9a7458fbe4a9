"""Streaming reader of `sacct -P -D` text: a header line, then one record a line, as far as people let it.

What people write (job names, comments, submit lines, paths) may hold the separator and newlines. A row is
taken when exactly one way to cut it makes every typed column valid. Everything else is an outcome too:
Rejected with its reason, its text and its line. Nothing is skipped but blank lines and repeated headers.

Times must be UTC (`TZ=UTC sacct …`): the text does not say its zone. What no reader can see: when free
text holds a newline and then what is a whole valid row by itself, that row is read as a record. Ask sacct for
a typed column behind each free one, as the command line in `columns.COMMAND` does.
"""

from collections.abc import Iterator

from telemetry.engine.slurm.columns import Plan, compile_plan, resembles_record
from telemetry.engine.slurm.errors import FieldError, FormatError, RowError
from telemetry.engine.slurm.groups import Row, explain, judge, resolve
from telemetry.engine.slurm.lines import MAX_LINE_BYTES, Line, Source, open_source, read_lines
from telemetry.engine.slurm.records import Outcome, Rejected
from telemetry.engine.slurm.rows import RowBuilder

FAULTS = {
    "line_too_long": f"A line of more than {MAX_LINE_BYTES} bytes; only its beginning is kept",
    "binary_data": "A zero byte: this is not text",
    "truncated_last_line": "The file ends in the middle of a line",
}
MAX_LINES_OF_RECORD = 64
MAX_BYTES_OF_RECORD = 256 * 1024


class SacctReader:
    """Iterate over the outcomes of a stream; `header`, `offset` and `next_line` are what a resume needs.

    `line` is the number of the line that the outcome yielded last began with.
    `offset` (bytes) and `next_line` move on when everything before them has been yielded: a reader made with
    them and with `header`, on a stream that stands at `offset`, yields the rest.
    """

    def __init__(
        self, source: Source, *, now_s: int, header: str | None = None, start_line: int = 1, offset: int = 0
    ) -> None:
        """Read the header, unless it is given; raises FormatError when this is no sacct text."""
        self.offset = offset
        self.line = self.next_line = start_line
        self._lines = read_lines(open_source(source), first_number=start_line, offset=offset)
        self.header = self._read_header() if header is None else header
        self._return = "\r" if self.header.endswith("\r") else ""
        self._plan: Plan = compile_plan(self.header)
        self._builder = RowBuilder(self._plan, now_s=now_s)

    def _read_header(self) -> str:
        line = next(self._lines, None)
        if line is None or not line.text.strip("\ufeff\r"):
            raise FormatError("empty_file", "There is nothing in this file.")
        if line.fault or line.damaged:
            raise FormatError("not_text", "This is not text: binary data or an endless first line.")
        self.offset, self.next_line = line.end, line.number + 1
        return line.text.removeprefix("\ufeff")

    def __iter__(self) -> Iterator[Outcome]:
        """Yield JobRecord, StepSeen and Rejected in the order of the file."""
        group: list[Row] = []
        size = 0
        for line in self._lines:
            if not line.whole:
                yield from self._cut_end(group, line)
                return
            row = self._row(line)
            if len(group) == 1 and row is not None and row.outcome is not None and group[0].outcome is not None:
                # By far the most lines: each a record by itself.
                self.line, self.offset, self.next_line = group[0].line.number, group[0].line.end, line.number
                yield group[0].outcome
                group[0], size = row, len(line.text)
                continue
            full = len(group) >= MAX_LINES_OF_RECORD or size + len(line.text) > MAX_BYTES_OF_RECORD
            if group and (row is None or row.outcome is not None or full):
                if len(group) == 1 and group[0].outcome is not None:
                    self.line, self.offset, self.next_line = group[0].line.number, group[0].line.end, line.number
                    yield group[0].outcome
                    group = []
                else:
                    ended = row is None or row.outcome is not None
                    resolved = resolve(self._plan, self._builder, group, full=not ended)
                    yield from self._hand_out(group, resolved.outcomes, rest=len(resolved.rest))
                    group = resolved.rest
                size = sum(len(kept.line.text) for kept in group)
            if row is not None:
                group.append(row)
                size += len(line.text)
        if group:
            yield from self._settle(group)

    def _row(self, line: Line) -> Row | None:
        """Read one line by itself; None for a repeated header, as between two files put together."""
        if line.text == self.header:
            return None
        if line.fault:
            return Row(line, (), Rejected(line.number, line.fault, FAULTS[line.fault], line.text))
        if self._return:
            line = line._replace(text=line.text.removesuffix(self._return))
        fields = line.text.split("|")
        outcome: Outcome | None = None
        if len(fields) == self._plan.width and "\ufffd" not in line.text:
            outcome = self._plain(line, fields)
        if outcome is None and len(fields) >= self._plan.width:
            outcome = judge(self._plan, self._builder, fields, line.number, line.text)
            if outcome is None and resembles_record(self._plan, fields):
                outcome = explain(self._plan, [Row(line, fields, None)])
        return Row(line, fields, outcome)

    def _plain(self, line: Line, fields: list[str]) -> Outcome | None:
        try:
            return self._builder.build(fields)
        except FieldError:
            return None
        except RowError as error:
            return Rejected(line.number, error.code, error.detail, line.text)

    def _settle(self, group: list[Row]) -> Iterator[Outcome]:
        outcomes = resolve(self._plan, self._builder, group).outcomes
        yield from self._hand_out(group, outcomes, rest=0)

    def _hand_out(self, group: list[Row], outcomes: list[tuple[int, Outcome]], *, rest: int) -> Iterator[Outcome]:
        """Yield the outcomes of a group; the place to resume at moves on with the last of them."""
        last = group[len(group) - rest - 1].line
        for self.line, outcome in outcomes[:-1]:
            yield outcome
        self.offset, self.next_line = last.end, last.number + 1
        for self.line, outcome in outcomes[-1:]:
            yield outcome

    def _cut_end(self, group: list[Row], line: Line) -> Iterator[Outcome]:
        """Set the last line aside when its end is missing, with the record it may belong to."""
        fields = line.text.split("|")
        open_end = self._plan.checks[-1] is None and not self._begins(fields)
        if group and not (open_end and not line.fault):
            yield from self._settle(group)
            group = []
        raw = "\n".join([*(row.line.text for row in group), line.text])
        number = group[0].line.number if group else line.number
        code = line.fault or "truncated_last_line"
        self.line, self.offset, self.next_line = number, line.end, line.number + 1
        yield Rejected(number, code, FAULTS[code], raw, len(group) + 1)

    def _begins(self, fields: list[str]) -> bool:
        check = self._plan.checks[0]
        if 0 not in self._plan.strong or check is None:
            return resembles_record(self._plan, fields)
        try:
            check(fields[0])
        except FieldError:
            return False
        return True

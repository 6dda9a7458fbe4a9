"""Blocks of sacct text: what is plain in columns, what is not by `SacctReader`, nothing read twice or left out.

A record may go on behind its line, where people wrote a newline. So a run of lines that are not plain is read
together with the plain line before it; the plain line behind it ends it, as in `SacctReader`. The last plain line of
a block waits for what comes behind.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

import polars as pl

from telemetry.engine.slurm.bulk_columns import ColumnReader, Columns
from telemetry.engine.slurm.columns import compile_plan
from telemetry.engine.slurm.lines import Source, number_outcomes, open_source
from telemetry.engine.slurm.records import Outcome
from telemetry.engine.slurm.sacct_text import SacctReader

READ_BYTES: Final = 4 * 1024 * 1024
_ODD_ROWS: Final = 2000  # of a file that is mostly not plain, as many outcomes make a block


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a file. `columns` are the plain ones (None: there are none), `odd` the outcomes of all others in
    their order; both give the number in the file of the line that the reading of each began with. Behind it stand
    `offset` bytes and `next_line`."""

    columns: Columns | None
    odd: Sequence[tuple[int, Outcome]]
    offset: int
    next_line: int


class BulkReader:
    """Iterate over the blocks of a stream; `header`, `offset` and `next_line` are what a resume needs."""

    def __init__(
        self, source: Source, *, now_s: int, header: str | None = None, start_line: int = 1, offset: int = 0,
        block_rows: int, block_bytes: int = READ_BYTES,
    ) -> None:  # fmt: skip
        """Read the header, unless it is given. Errors: `FormatError` when this is no sacct text.

        `block_bytes` are read and cut at once, for a cut costs some milliseconds whatever its size; of them come blocks
        of about `block_rows` plain lines.
        """
        self._stream, self._now_s = open_source(source), now_s
        self._block_bytes, self._block_rows = block_bytes, block_rows
        first = SacctReader(self._stream, now_s=now_s, header=header, start_line=start_line, offset=offset)
        self.header, self.offset, self.next_line = first.header, first.offset, first.next_line
        plan = compile_plan(self.header)
        plain = ColumnReader.fits(plan) and not self.header.endswith("\r")
        self._columns = ColumnReader(plan, self.header, now_s=now_s) if plain else None

    def __iter__(self) -> Iterator[Block]:
        """Yield blocks; `offset` and `next_line` stand behind the one that was yielded last."""
        left = b""
        while self._columns is not None and (part := self._stream.read(self._block_bytes)):
            left += part
            whole = left.rfind(b"\n") + 1
            lines = pl.Series("text", [left[:whole].decode(errors="replace")]).str.split("\n").explode().head(-1)
            columns = self._columns.read(lines)
            plain = sorted([*columns.jobs["line"].to_list(), *columns.steps])
            if len(plain) * 2 <= len(lines):  # also a block without a single whole line
                break
            starts = _starts(left)
            yield from self._settle(left, starts, columns, plain)
            left = left[starts[plain[-1]] :]
        yield from self._read_by_rows(left)

    def _settle(self, data: bytes, starts: Sequence[int], columns: Columns, plain: Sequence[int]) -> Iterator[Block]:
        """Read what is not plain before the last plain line, and yield all before it."""
        offset, line, odd, taken = self.offset, self.next_line, list[tuple[int, Outcome]](), {plain[-1]}
        for first, behind in _odd_runs(plain):
            reader = self._reader(io.BytesIO(data[starts[first] : starts[behind]]), first, starts[first])
            odd += number_outcomes(reader)
            taken.add(first)
        jobs = columns.jobs.filter(~pl.col("line").is_in(sorted(taken)))
        numbered = jobs.with_columns(pl.col("line") + line)
        steps = [step for step in columns.steps if step not in taken]
        for first, behind in pairwise(sorted({0, *plain[:: self._block_rows], plain[-1]})):
            self.offset, self.next_line = offset + starts[behind], line + behind
            at, end = (int(jobs["line"].search_sorted(edge)) for edge in (first, behind))
            own = [line + step for step in steps if first <= step < behind]
            others = [each for each in odd if line + first <= each[0] < self.next_line]
            yield Block(Columns(numbered[at:end], columns.tails, own), others, self.offset, self.next_line)

    def _reader(self, source: Source, line: int = 0, offset: int = 0) -> SacctReader:
        return SacctReader(
            source, now_s=self._now_s, header=self.header, start_line=self.next_line + line, offset=self.offset + offset
        )

    def _read_by_rows(self, left: bytes) -> Iterator[Block]:
        """Read the rest of the stream row by row: its end, or all of a file that has little that is plain."""
        rest = chain([left] if left else [], iter(lambda: self._stream.read(1 << 16), b""))
        reader, odd, before = self._reader(rest), list[tuple[int, Outcome]](), self.offset
        for each in number_outcomes(reader):
            odd.append(each)
            settled, before = reader.offset != before, reader.offset
            if settled and len(odd) >= _ODD_ROWS:
                yield self._odd_block(reader, odd)
                odd = []
        yield self._odd_block(reader, odd)

    def _odd_block(self, reader: SacctReader, odd: Sequence[tuple[int, Outcome]]) -> Block:
        self.offset, self.next_line = reader.offset, reader.next_line
        return Block(None, odd, self.offset, self.next_line)


def _odd_runs(plain: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of lines between plain ones, each with the plain line before it: first line, line behind."""
    if plain[0]:
        yield 0, plain[0]
    for before, behind in pairwise(plain):
        if behind != before + 1:
            yield before, behind


def _starts(data: bytes) -> list[int]:
    """Return where each line begins."""
    starts, at = [0], data.find(b"\n") + 1
    while at:
        starts.append(at)
        at = data.find(b"\n", at) + 1
    return starts

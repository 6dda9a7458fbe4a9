"""Which form a dump has, told from its beginning, and its blocks: all are read into the same records.

Text of `sacct -P` is read in columns; what `sacct --json` prints and Open XDMoD's 26 columns record by record.
"""

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, Final, NamedTuple

from telemetry.engine.slurm import job_columns, xdmod_text
from telemetry.engine.slurm.bulk import Block, BulkReader
from telemetry.engine.slurm.columns import Plan, compile_plan, resembles_xdmod
from telemetry.engine.slurm.lines import MAX_LINE_BYTES, number_outcomes
from telemetry.engine.slurm.sacct_json import SacctJsonReader
from telemetry.engine.slurm.xdmod_text import XdmodReader

BLOCK_ROWS: Final = 50_000
_RECORDS: Final = 5_000  # of those that are read one by one


class Dump(NamedTuple):
    """An open dump: the columns that its records have, its blocks, and what is to be said about the reading."""

    plan: Plan
    blocks: Iterator[Block]
    warnings: tuple[str, ...] = ()


def open_dump(source: BinaryIO, *, now_s: int) -> Dump:
    """Open a dump of any form; the source must be one that can be read again.

    Errors: `FormatError` when it has none of these forms.
    """
    beginning = source.tell()
    line = source.readline(MAX_LINE_BYTES).decode(errors="replace").removeprefix("\ufeff")
    source.seek(beginning)
    if line.lstrip().startswith("{"):
        document = SacctJsonReader(source, now_s=now_s)
        return Dump(job_columns.PLAN, _blocks(document), document.warnings)
    if resembles_xdmod(line.rstrip("\r\n").split("|")):
        return Dump(compile_plan(xdmod_text.COLUMNS), _blocks(XdmodReader(source, now_s=now_s)))
    text = BulkReader(source, now_s=now_s, block_rows=BLOCK_ROWS)
    return Dump(compile_plan(text.header), iter(text))


def _blocks(reader: SacctJsonReader | XdmodReader) -> Iterator[Block]:
    """Cut what is read one by one into blocks."""
    outcomes = number_outcomes(reader)
    while odd := list(islice(outcomes, _RECORDS)):
        yield Block(None, odd, reader.offset, reader.next_line)

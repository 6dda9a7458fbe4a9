"""From a stream of bytes to chunks of outcomes, each with the place to go on from after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telemetry.engine.slurm.lines import Source, number_outcomes
from telemetry.engine.slurm.records import Outcome
from telemetry.engine.slurm.sacct_json import SacctJsonReader
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.engine.slurm.xdmod_text import XdmodReader

if TYPE_CHECKING:
    from telemetry.engine.slurm.bulk import Block

FORMATS: Final = ("sacct", "sacct-json", "xdmod")
RECORDS: Final = "records"  # records that came as objects, not as text
CHUNK_ROWS: Final = 2000
# A block is one transaction: so long other writers wait. On PostgreSQL those of the same cluster, about a second; on
# SQLite all of them, a fifth of a second.
BLOCK_ROWS: Final = {"sqlite": 2500, "postgresql": 20_000}
# A long line that was set aside counts for many rows, so that a chunk of them stays small in memory.
_CHUNK_BYTES: Final = 4 * 1024 * 1024

Reader = SacctReader | SacctJsonReader | XdmodReader


@dataclass(frozen=True, slots=True)
class Place:
    """Where to go on: bytes before it, the number of the next line (from 1), the header line of the format."""

    offset: int = 0
    line: int = 1
    header: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Outcomes that are committed together, each with the line it began with, and the place behind them."""

    outcomes: Sequence[tuple[int, Outcome]]
    place: Place
    block: "Block | None" = None  # instead of outcomes: lines of which the plain ones are in columns


def open_reader(source: Source, *, format: str, place: Place, now_s: int) -> Reader:
    """Return the reader of a format on a stream that stands at `place.offset`. Errors: `FormatError`."""
    if format == "xdmod":
        return XdmodReader(source, now_s=now_s, start_line=place.line, offset=place.offset)
    kind = SacctJsonReader if format == "sacct-json" else SacctReader
    return kind(source, now_s=now_s, header=place.header or None, start_line=place.line, offset=place.offset)


def cut_blocks(source: Source, *, place: Place, now_s: int, size: int) -> Iterator[Chunk]:
    """Cut sacct text into blocks of about `size` rows that are read in columns. Errors: `FormatError`."""
    from telemetry.engine.slurm.bulk import BulkReader

    reader = BulkReader(
        source, now_s=now_s, header=place.header or None, start_line=place.line, offset=place.offset, block_rows=size,
    )  # fmt: skip
    for block in reader:
        yield Chunk((), Place(block.offset, block.next_line, reader.header), block)


def cut_stream(reader: Reader, size: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """Cut what a reader yields into chunks; ends only where the reader could go on from. Errors: `FormatError`."""
    outcomes: list[tuple[int, Outcome]] = []
    start = before = reader.offset
    for each in number_outcomes(reader):
        outcomes.append(each)
        # The lines of one puzzle are settled together: the place moves on with the last of their outcomes.
        settled = reader.offset != before
        before = reader.offset
        if settled and (len(outcomes) >= size or before - start >= _CHUNK_BYTES):
            yield Chunk(outcomes, _place_of(reader))
            outcomes, start = [], before
    yield Chunk(outcomes, _place_of(reader))


def _place_of(reader: Reader) -> Place:
    return Place(reader.offset, reader.next_line, reader.header)

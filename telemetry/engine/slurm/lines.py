"""Physical lines of a byte stream with a bounded length, their numbers and the offsets behind them."""

import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias, cast

from telemetry.engine.slurm.records import Outcome

MAX_LINE_BYTES = 256 * 1024
KEPT_OF_LONG_LINE = 4096

Source: TypeAlias = BinaryIO | Iterable[bytes]


class Line(NamedTuple):
    """One physical line without its end. `fault` is "", "line_too_long" or "binary_data"; `end` is the byte
    offset behind it; `whole` says that the line's end was there; `damaged` that bytes were not UTF-8."""

    number: int
    text: str
    end: int
    whole: bool
    fault: str
    damaged: bool


class LineReader(Protocol):
    """A reader of outcomes: `line` is where the one that was yielded last began."""

    line: int

    def __iter__(self) -> Iterator[Outcome]: ...


class _ChunkReader(io.RawIOBase):
    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = bytes(chunk)
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)


def open_source(source: Source) -> BinaryIO:
    """Give a readable binary stream over a file object or an iterable of byte chunks of any size."""
    if isinstance(source, io.RawIOBase | io.BufferedIOBase) or hasattr(source, "readline"):
        return cast(BinaryIO, source)
    return cast(BinaryIO, io.BufferedReader(_ChunkReader(source), buffer_size=1 << 16))


def read_lines(stream: BinaryIO, *, first_number: int = 1, offset: int = 0) -> Iterator[Line]:
    """Yield the lines of a stream; holds at most MAX_LINE_BYTES of any of them in memory.

    Bytes that are not UTF-8 become U+FFFD and set `damaged`. Only `\\n` ends a line; a `\\r` before it stays.
    """
    number = first_number
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        offset += len(raw)
        fault = ""
        whole = raw.endswith(b"\n")
        if not whole and len(raw) > MAX_LINE_BYTES:
            fault = "line_too_long"
            raw = raw[:KEPT_OF_LONG_LINE]
            skipped, whole = _skip_rest(stream)
            offset += skipped
        elif b"\0" in raw:
            fault = "binary_data"
        elif whole:
            raw = raw[:-1]
        damaged = False
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text, damaged = raw.decode(errors="replace"), True
        yield Line(number, text, offset, whole, fault, damaged)
        number += 1


def number_outcomes(reader: LineReader) -> Iterator[tuple[int, Outcome]]:
    """Yield outcomes, each with the number of the line that its reading began with."""
    for outcome in reader:
        yield reader.line, outcome


def _skip_rest(stream: BinaryIO) -> tuple[int, bool]:
    skipped = 0
    while part := stream.readline(MAX_LINE_BYTES):
        skipped += len(part)
        if part.endswith(b"\n"):
            return skipped, True
    return skipped, False

"""One record at a time out of a JSON document of any size: `{"jobs": [{…}, {…}], "meta": {…}}`.

Held in memory is one chunk, or the record that is being read where that is longer. Bytes that are not UTF-8 stay as
they are (`surrogateescape`), so that offsets in bytes are true.
"""

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from telemetry.engine.slurm.documents import refuse_text
from telemetry.engine.slurm.errors import FormatError

CHUNK_BYTES: Final = 256 * 1024
MAX_RECORD_CHARS: Final = 64 * 1024 * 1024
_BLANK: Final = " \t\r\n"


class Skim(NamedTuple):
    """What stands around the array: the other members, how many records it has, the byte behind its bracket."""

    members: dict[str, Any]
    records: int
    offset: int


class JsonStream:
    """A cursor in a JSON text; `offset` counts the bytes before it."""

    def __init__(self, stream: BinaryIO, *, offset: int = 0) -> None:
        """Go on in a stream that stands at byte `offset`; nothing is read yet."""
        self.offset = offset
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._json = json.JSONDecoder()
        self._text, self._at = "", 0

    def skim(self, key: str) -> Skim:
        """Read a whole document from its beginning, letting go of the records of the array `key`.

        Errors: FormatError `empty_file`, `json_is_text`, `not_json`, `no_records`, `record_too_long`.
        """
        self._fill(CHUNK_BYTES)
        refuse_text(self._text[:200])
        self._take("\ufeff", optional=True)
        self._take("{")
        members: dict[str, Any] = {}
        count, start = 0, None
        while self._peek() != "}":
            name = self._value()[0]
            self._take(":")
            if name == key and start is None and self._peek() == "[":
                self._take("[")
                start = self.offset
                count = sum(1 for _ in self.records())
                self._take("]")
            else:
                members[str(name)] = self._value()[0]
            self._take(",", optional=True)
        if start is None:
            raise FormatError("no_records", f"There is no list of {key} in it.")
        return Skim(members, count, start)

    def records(self) -> Iterator[tuple[Any, str]]:
        """Yield the records of an array from here to its end, each with its text; `offset` is behind it then.

        Errors: FormatError `not_json`, `record_too_long`.
        """
        self._take(",", optional=True)  # where a reading goes on
        while self._peek() != "]":
            yield self._value()
            self._take(",", optional=True)

    def _peek(self) -> str:
        while True:
            end = self._at
            while end < len(self._text) and self._text[end] in _BLANK:
                end += 1
            self._move(end)
            if end < len(self._text):
                return self._text[end]
            if not self._fill(CHUNK_BYTES):
                raise FormatError("not_json", "This JSON ends in the middle.")

    def _take(self, char: str, *, optional: bool = False) -> None:
        found = self._peek()
        if found == char:
            self._move(self._at + 1)
        elif not optional:
            raise FormatError("not_json", f"{char!r} was due at byte {self.offset}, and not {found!r}.")

    def _value(self) -> tuple[Any, str]:
        """Read one value; what cannot be read yet may be cut, so more of the stream is tried first."""
        self._peek()
        while True:
            size = len(self._text) - self._at
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except ValueError as error:
                if size > MAX_RECORD_CHARS:
                    raise FormatError("record_too_long", f"A record of more than {MAX_RECORD_CHARS} bytes.") from error
                if not self._fill(max(CHUNK_BYTES, size)):
                    raise FormatError("not_json", f"This is no JSON at byte {self.offset}: {error.args[0]}.") from error
                continue
            except RecursionError as error:
                raise FormatError("not_json", f"Too deep at byte {self.offset}.") from error
            length = end - self._at
            if end < len(self._text) or not self._fill(CHUNK_BYTES):  # else: a number may go on
                end = self._at + length
                text = self._text[self._at : end]
                self._move(end)
                return value, text

    def _fill(self, size: int) -> bool:
        """Read on; the text before the cursor is let go. Say whether there was more."""
        data = self._stream.read(size)
        self._text = self._text[self._at :] + self._decoder.decode(data, final=not data)
        self._at = 0
        return bool(data)

    def _move(self, to: int) -> None:
        passed = self._text[self._at : to]
        self.offset += len(passed) if passed.isascii() else len(passed.encode("utf-8", "surrogateescape"))
        self._at = to

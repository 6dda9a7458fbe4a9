"""Lines out of pieces of any size; one without end is passed over, and takes no room meanwhile."""

from collections.abc import Iterator
from typing import Final

LONGEST: Final = 1 << 20


class Lines:
    """Cut what comes into lines. `too_long` of them were passed over."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_passing = False
        self.too_long = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that are complete, without their ends."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            line, self._rest = self._rest + line, b""
            if self._is_passing:
                self._is_passing = False
            elif len(line) > LONGEST:
                self.too_long += 1
            elif line.strip():
                yield line
        if self._is_passing:
            return
        self._rest += rest
        if len(self._rest) > LONGEST:
            self._rest, self._is_passing = b"", True
            self.too_long += 1

    def rest(self) -> bytes:
        """Return what has no end yet, and forget it: nothing more comes."""
        rest, self._rest = self._rest, b""
        return rest

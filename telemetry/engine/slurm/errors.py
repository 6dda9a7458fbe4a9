"""Errors of the Slurm adapters: of one value, of one row, of a whole file."""

from collections.abc import Iterable
from typing import Final

SHOWN: Final = 8000  # of a text that is quoted: who shows it takes secrets out first, which a shorter cut would hide


class FieldError(ValueError):
    """A value that its column's type does not allow; `code` is the stable reason."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class RowError(ValueError):
    """A row whose every value is well formed but which cannot be a job record."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class FormatError(ValueError):
    """A file that cannot be read as this format at all: nothing of it was taken."""

    def __init__(self, code: str, detail: str, *, missing: Iterable[str] = (), remedy: str = "") -> None:
        super().__init__(f"{detail} {remedy}".strip())
        self.code = code
        self.detail = detail
        self.missing = tuple(missing)
        self.remedy = remedy

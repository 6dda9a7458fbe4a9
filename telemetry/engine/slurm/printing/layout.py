"""The columns of a line: read from `-o` and `-O`, and laid out as squeue lays them out, in bytes.

Sources: squeue(1); what it leaves open (bytes or letters, what is cut, what no text is) as 22.05 does it.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.fields import BY_KEY, BY_LETTER, NULL, WHOLE_HEADERS, Field

DEFAULT: Final = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
UNSAID_WIDTH: Final = 20  # of a field of `-O` without a colon
WIDEST: Final = 4096
_SHORT: Final = re.compile(r"%(\.?)(\d*)([A-Za-z])([^%]*)", re.ASCII)
_LONG: Final = re.compile(r"([A-Za-z_-]+)(?::(\.?)(\d*)(.*))?", re.ASCII | re.DOTALL)


class Column(NamedTuple):
    """A field with its width in bytes (0: as wide as its text), where it stands in it, and what follows."""

    field: Field
    width: int
    is_right: bool
    suffix: bytes


class Layout(NamedTuple):
    """What stands before each line, and its columns."""

    prefix: bytes
    columns: tuple[Column, ...]


def read_short(text: str) -> Layout:
    """Read a format of `-o`. Errors: `PassedOn`."""
    first = text.find("%")
    if first < 0 or text.lower() == "%all":
        raise PassedOn("format")
    matches = list(_SHORT.finditer(text, first))
    if "".join(match[0] for match in matches) != text[first:]:
        raise PassedOn("format")
    columns = [
        _column(BY_LETTER.get(letter), size, dot, suffix)
        for dot, size, letter, suffix in (match.groups() for match in matches)
    ]
    return Layout(_bytes(text[:first]), tuple(columns))


def read_long(text: str) -> Layout:
    """Read a format of `-O`. Errors: `PassedOn`."""
    columns = []
    for token in text.split(","):
        match = _LONG.fullmatch(token)
        if match is None:
            raise PassedOn("format")
        name, dot, size, suffix = match.groups()
        # Slurm reads the width as C reads a number: blanks and a sign before it belong to it.
        if suffix and not size and suffix[0] in " \t\n\v\f\r+-":
            raise PassedOn("format")
        width = str(UNSAID_WIDTH) if size is None else size
        columns.append(_column(BY_KEY.get(name.lower()), width, dot or "", suffix or ""))
    return Layout(b"", tuple(columns))


def _column(field: Field | None, size: str, dot: str, suffix: str) -> Column:
    width = int(size or 0) if len(size) <= len(str(WIDEST)) else WIDEST + 1
    if field is None:
        raise PassedOn("field")
    if width > WIDEST:
        raise PassedOn("format")
    return Column(field, width, bool(dot), _bytes(suffix))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def lay_out(layout: Layout, texts: Sequence[str | None]) -> bytes:
    """Return a line of texts, one a column, with its end. Errors: `PassedOn` for a text that is not known."""
    cells = (lay_out_cell(column, text) + column.suffix for column, text in zip(layout.columns, texts, strict=True))
    return layout.prefix + b"".join(cells) + b"\n"


def lay_out_header(layout: Layout) -> bytes:
    """Return the line of headers."""
    columns = [
        column._replace(field=column.field._replace(is_cut=column.field.key not in WHOLE_HEADERS))
        for column in layout.columns
    ]
    return lay_out(layout._replace(columns=tuple(columns)), [column.field.header for column in columns])


def lay_out_cell(column: Column, text: str | None) -> bytes:
    """Return a text in its column. Errors: `PassedOn` for a text that is not known, or not for sure."""
    if text is None:
        raise PassedOn("withheld")
    width, cell = column.width, text.encode()
    if not width:
        return cell
    if not column.is_right:
        if text == NULL and width < len(NULL):  # C prints no part of "(null)" for no text, and a part for this text
            raise PassedOn("null")
        return cell[:width].ljust(width)
    # A reason is cut, a list of nodes in the same column is not.
    is_cut = column.field.is_cut or (column.field.key == "reasonlist" and text.startswith("("))
    return (cell[:width] if is_cut else cell).rjust(width)

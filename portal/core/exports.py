"""Exports of a list, as CSV or JSON: the same rows as on screen, all pages."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpResponse

from portal.core.errors import Invalid

KINDS = ("csv", "json")
# A spreadsheet runs a cell that starts like this (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_encoder = DjangoJSONEncoder(ensure_ascii=False)


def export(kind: str, name: str, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> HttpResponse:
    """Return `rows` (a mapping each, with the keys `columns`) as the download `<name>.<kind>`; the caller bounds them.

    Instants are ISO 8601 in UTC, absent values empty (CSV) or null (JSON). Errors: `Invalid` for another kind.
    """
    if kind not in KINDS:
        raise Invalid(f"There is no export as {kind[:20]}.", code="export_format", remedy="Use format=csv or json.")
    names = list(columns)
    write, media = (_csv, "text/csv; charset=utf-8") if kind == "csv" else (_json, "application/json")
    response = HttpResponse("".join(write(names, rows)), content_type=media)
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return response


class _Line:
    """A file of which each write is handed on instead of kept."""

    def write(self, text: str) -> str:
        return text


def _csv(names: list[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(names)
    for row in rows:
        yield writer.writerow([_cell(row.get(name)) for name in names])


def _cell(value: Any) -> Any:
    """Return a value as a cell no spreadsheet runs; dates as JSON writes them."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else _encoder.encode(value).strip('"')
    return f"'{text}" if text.startswith(_FORMULA) else text


def _json(names: list[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    opening = "["
    for row in rows:
        yield f"{opening}\n{_encoder.encode({name: row.get(name) for name in names})}"
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"

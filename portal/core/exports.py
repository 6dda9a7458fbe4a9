"""Exports of a list, as CSV or JSON: the same rows as on screen, all pages."""

import csv
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from portal.core.errors import Invalid

KINDS = ("csv", "json")
LINES_AT_ONCE = 500
# A spreadsheet runs a cell that starts like this (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_encoder = DjangoJSONEncoder(ensure_ascii=False)


def export(kind: str, name: str, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> HttpResponse:
    """Return `rows` (a mapping each, with the keys `columns`) as the download `<name>.<kind>`; the caller bounds them.

    Instants are ISO 8601 in UTC, absent values empty (CSV) or null (JSON). Errors: `Invalid` for another kind.
    """
    lines, headers = _download(kind, name, columns, rows)
    return HttpResponse("".join(lines), headers=headers)


def stream(
    request: HttpRequest, kind: str, name: str, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]
) -> StreamingHttpResponse:
    """Return the same download written as it is read, for lists of many rows: memory holds `LINES_AT_ONCE` of them."""
    lines, headers = _download(kind, name, columns, rows)
    drawn = pieces(lines)
    # An ASGI server would draw the whole of a plain iterator before it sends anything.
    content = threaded(drawn) if isinstance(request, ASGIRequest) else drawn
    return StreamingHttpResponse(content, headers=headers)


def _download(
    kind: str, name: str, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]
) -> tuple[Iterator[str], dict[str, str]]:
    if kind not in KINDS:
        raise Invalid(f"There is no export as {kind[:20]}.", code="export_format", remedy="Use format=csv or json.")
    write, media = (_csv, "text/csv; charset=utf-8") if kind == "csv" else (_json, "application/json")
    headers = {"Content-Type": media, "Content-Disposition": f'attachment; filename="{name}.{kind}"'}
    return write(list(columns), rows), headers


def pieces(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a download, many at once."""
    while piece := "".join(islice(lines, LINES_AT_ONCE)):
        yield piece


async def threaded(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Draw pieces one by one in a thread, for an ASGI server."""

    def following() -> str | None:
        return next(pieces, None)

    while (piece := await sync_to_async(following)()) is not None:
        yield piece


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

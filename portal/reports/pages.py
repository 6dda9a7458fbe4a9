"""A report's content as a page, a document, CSV or JSON. All of them write the numbers that the content holds."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string

from portal.core import exports
from portal.dashboard import formats
from portal.reports import monthly
from portal.reports.bars import bars_of
from portal.reports.curves import curves_of

# Tables longer than this stand behind "Show the numbers".
LONG = 12
# Tables of more columns take a row of the page to themselves.
NARROW = 3
SHARE_FIGURES = ("people", "submissions", "core-hours", "GPU-hours")
Json = dict[str, Any]


def shown(value: float | None, unit: str) -> str:
    """Write a number of a figure in its unit, as on every page."""
    if value is None:
        return formats.ABSENT
    if unit == "share":
        return formats.percent(value)
    if unit == "s":
        return formats.duration(value)
    if unit == "ratio":
        return formats.ratio(value)
    return formats.count(value)


def sections(content: Json) -> list[Json]:
    """Prepare a report's sections for its template: every number written, every table with its heads."""
    prepared = []
    for number, section in enumerate(content["sections"], start=1):
        measured = [_figure(figure) for figure in section["figures"] if not figure["needs"]]
        missing = [figure for figure in section["figures"] if figure["needs"]]
        prepared.append(
            {
                "number": number,
                "table_id": f"in-short-{number}",
                "title": section["title"],
                "figures": measured,
                "small": [figure for figure in measured if figure["table"] and not figure["wide"]],
                "large": [figure for figure in measured if figure["table"] and figure["wide"]],
                "missing": missing,
            }
        )
    return prepared


def _figure(figure: Json) -> Json:
    units = [column["unit"] for column in figure["columns"]]
    rows = [{"label": row["label"], "cells": _cells(row, units)} for row in figure["rows"]]
    long = len(rows) > LONG
    return figure | {
        "table_id": f"table-{figure['key']}",
        "unit_words": "" if figure["unit"] in ("share", "s", "ratio") else figure["unit"],
        "shown": shown(figure["value"], figure["unit"]),
        "unknown": shown(figure["unknown_share"], "share") if figure["unknown_share"] is not None else "",
        "heads": "; ".join(["Rows", *(f"{column['title'].replace(';', ',')}|n" for column in figure["columns"])]),
        "table": rows,
        "long": long,
        "wide": long or len(units) > NARROW,
        "curves": curves_of(figure, shown) if long else None,
        "bars": bars_of(figure, shown),
    }


def _cells(row: Json, units: list[str]) -> list[Json]:
    """Return a row's cells; its first number opens the jobs behind the row."""
    return [
        {"text": shown(value, unit), "url": row["url"] if place == 0 and value is not None else ""}
        for place, (value, unit) in enumerate(zip(row["values"], units, strict=True))
    ]


def lead_shares(content: Json, definition: str = "account") -> list[Json]:
    """Return the rows of the headline picture: agents' share of each measure under a definition."""
    figures = {figure["key"]: figure for section in content["sections"] for figure in section["figures"]}
    rows = []
    for title in SHARE_FIGURES:
        figure = figures[f"share-{title}-{definition}"]
        amounts = [row["values"][0] or 0 for row in figure["rows"]]
        rows.append(
            {
                "label": title[0].upper() + title[1:], "part": formats.short(amounts[0]),
                "whole": formats.short(sum(amounts)), "share": figure["value"],
            }
        )  # fmt: skip
    return rows if all(row["share"] is not None for row in rows) else []


def context(content: Json) -> Json:
    """Return what the templates of a report need."""
    return {"content": content, "sections": sections(content), "lead": lead_shares(content)}


def respond(content: Json, kind: str) -> HttpResponse:
    """Return a report as a download, `csv` or `json`. Errors: Invalid for another kind."""
    name = f"agent-load-{content['cluster']}-{content['month']}"
    if kind == "json":
        response = HttpResponse(as_json(content), content_type="application/json")
        response["Content-Disposition"] = f'attachment; filename="{name}.json"'
        return response
    return exports.export(kind, name, monthly.FLAT_COLUMNS, monthly.flat_rows(content))


def as_json(content: Json) -> str:
    """Write a report's content as JSON, floats to the last digit."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def write(content: Json, kind: str) -> str:
    """Write a report as `json`, `csv`, or an `html` document that stands alone."""
    if kind == "html":
        css = (settings.BASE_DIR / "portal" / "static" / "portal.css").read_text(encoding="utf-8")
        return render_to_string("reports/document.html", context(_with_whole_urls(content)) | {"css": css})
    return respond(content, kind).content.decode()


def _with_whole_urls(content: Json) -> Json:
    """Let the numbers of a document that stands alone lead to the portal that wrote it."""

    def whole(part: Json) -> Json:
        url = part["url"]
        return part | {"url": f"{settings.BASE_URL}{url}" if url else ""}

    sections = [
        section
        | {"figures": [whole(one) | {"rows": [whole(row) for row in one["rows"]]} for one in section["figures"]]}
        for section in content["sections"]
    ]
    return content | {"sections": sections}

"""A report's content as a page, a document, CSV or JSON. All of them write the numbers that the content holds."""

import json

from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string

from portal.core import exports
from portal.dashboard import formats
from portal.reports import monthly
from portal.reports.drawing import Json, sections, shown

SHARE_FIGURES = ("people", "submissions", "core-hours", "GPU-hours")
__all__ = ["as_json", "context", "lead_shares", "respond", "sections", "shown", "write"]


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

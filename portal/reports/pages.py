"""A report's content as a page, a document, CSV or JSON. All of them write the numbers that the content holds."""

import json

from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string

from portal.core import exports
from portal.reports import monthly
from portal.reports.drawing import LEAD_MEASURES, Json, lead_row, sections


def context(content: Json) -> Json:
    """Return what the templates of a report need."""
    return {"content": content, "sections": sections(content), "lead": _lead(content)}


def _lead(content: Json) -> list[Json]:
    """Return the rows of the headline picture: agents' share of each measure by account, where all are known."""
    figures = {figure["key"]: figure for section in content["sections"] for figure in section["figures"]}
    rows = [lead_row(title, figures[f"share-{title}-account"]) for title in LEAD_MEASURES]
    return rows if all(row["share"] is not None for row in rows) else []


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

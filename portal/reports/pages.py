"""A report's content as a page, a document, a PDF, CSV or JSON: all of them write the numbers that it holds."""

import json
from typing import Final

from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string

from portal.core import exports
from portal.core.errors import Conflict
from portal.reports import brief, contents, pdf
from portal.reports.drawing import LEAD_MEASURES, Json, lead_row, sections

TEXT: Final = "text"
KINDS: Final = ("json", "csv", "html", "pdf")
BRIEF_KINDS: Final = (TEXT, "html", "pdf", "json")
_MEDIA: Final = {"json": "application/json", "html": "text/html; charset=utf-8", "pdf": "application/pdf"}


def context(content: Json) -> Json:
    """Return what the templates of a report need."""
    return {
        "content": content, "sections": sections(content), "lead": _lead(content), "name": name_of(content),
        "against": brief.against(content),
    }  # fmt: skip


def name_of(content: Json) -> str:
    """Return the name of its period in addresses; before schema 2 all were months."""
    name: str = content.get("period") or content["month"]
    return name


def _lead(content: Json) -> list[Json]:
    """Return the rows of the headline picture: agents' share of each measure by account, where all are known."""
    figures = {figure["key"]: figure for section in content["sections"] for figure in section["figures"]}
    rows = [lead_row(title, figures[f"share-{title}-account"]) for title in LEAD_MEASURES]
    return rows if all(row["share"] is not None for row in rows) else []


def respond(content: Json, kind: str) -> HttpResponse:
    """Return a report as a download, one of `KINDS`. Errors: `Invalid` for another kind, Conflict `no_pdf`."""
    name = f"agent-load-{content['cluster']}-{name_of(content)}"
    if kind not in _MEDIA:
        return exports.export(kind, name, contents.FLAT_COLUMNS, contents.flat_rows(content))
    response = HttpResponse(write(content, kind), content_type=_MEDIA[kind])
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return response


def as_json(content: Json) -> str:
    """Write a report's content as JSON, floats to the last digit."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def write(content: Json, kind: str) -> bytes:
    """Write a report as one of `KINDS`; an `html` document stands alone. Errors: Conflict `no_pdf`."""
    if kind == "json":
        return as_json(content).encode()
    if kind == "csv":
        return respond(content, kind).content
    css = (settings.BASE_DIR / "portal" / "static" / "portal.css").read_text(encoding="utf-8")
    html = render_to_string("reports/document.html", context(_with_whole_urls(content)) | {"css": css})
    return _as(html, kind)


def write_brief(content: Json, kind: str) -> bytes:
    """Write a report's short form, one of `BRIEF_KINDS`: `text` and `html` are fit for a mail."""
    short = brief.of(_with_whole_urls(content))
    if kind == "json":
        return as_json(short).encode()
    if kind == TEXT:
        return render_to_string("reports/brief.txt", {"brief": short}).encode()
    return _as(render_to_string("reports/brief_document.html", {"brief": short}), kind)


def _as(html: str, kind: str) -> bytes:
    if kind != "pdf":
        return html.encode()
    try:
        return pdf.print_html(html)
    except pdf.CannotPrint as error:
        raise Conflict(error.detail, code="no_pdf", remedy=error.remedy) from None


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

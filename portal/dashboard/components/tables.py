"""The data-table and what filters it: heads, foot, segments, removable filters, the address of the view.

Every control is a query parameter, so links are made from the request's own query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, QueryDict
from django.template.context import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.dashboard.components.library import draw, register
from portal.dashboard.components.offers import offer

SORT, PAGE, FORMAT = "sort", "page", "format"
EXPORT_NAMES = {"csv": "CSV", "json": "JSON", "ocsf": "OCSF", "pdf": "PDF"}


def query(request: HttpRequest | None, **changes: Any) -> str:
    """Return the request's query with `changes`; None drops a parameter, any change goes back to page one."""
    params = request.GET.copy() if request else QueryDict(mutable=True)
    if PAGE not in changes:
        params.pop(PAGE, None)
    params.pop(FORMAT, None)
    for key, value in changes.items():
        params.pop(key, None)
        if value not in (None, ""):
            params.setlist(key, value if isinstance(value, list | tuple) else [str(value)])
    return f"?{params.urlencode(safe=',')}"


def heads(request: HttpRequest | None, columns: str, sort: str) -> list[dict[str, Any]]:
    """Read a column list: "Lab; Agents|n|agents; Cost|n|cost; Action|sr". Parts: n, sr, or a sort key."""
    current, falling = sort.lstrip("-"), sort.startswith("-")
    found = []
    for column in (part.strip() for part in columns.split(";") if part.strip()):
        name, *marks = (part.strip() for part in column.split("|"))
        key = next((m for m in marks if m not in {"n", "sr"}), "")
        active = bool(key) and key == current
        turned = key if active and falling else f"-{key}"
        found.append(
            {
                "name": name,
                "right": "n" in marks,
                "hidden": "sr" in marks,
                "url": query(request, sort=turned) if key else "",
                "aria_sort": ("descending" if falling else "ascending") if active else "",
            }
        )
    return found


def exports_of(request: HttpRequest | None, kinds: str, noun: str) -> list[dict[str, str]]:
    """Return the export links of a view: the same query with `format=`, all pages."""
    names = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    return [{"name": EXPORT_NAMES[kind], "noun": noun, "url": query(request, format=kind)} for kind in names]


def _one(noun: str) -> str:
    """Return a noun for one: deliveries, batches and jobs are a delivery, a batch and a job."""
    if noun.endswith("ies"):
        return f"{noun[:-3]}y"
    return noun.removesuffix("es") if noun.endswith("ches") else noun.removesuffix("s")


@register.simple_block_tag(takes_context=True)
def data_table(
    context: Context, content: str, title: str, id: str, columns: str, *, sort: str = "", meta: str = "", css: str = "",
    stack: bool = False, wide: bool = False, live: bool = False, page: Any = None, total: int | None = None,
    noun: str = "rows", all_url: str = "", all_label: str = "", exports: str = "csv,json", sub: str = "",
    bare: bool = False, level: int = 2, foot: str = "",
) -> SafeString:  # fmt: skip
    """Draw a table; the block holds its rows.

    `columns` as in `heads`; `sort` is the order in force ("-gpu_hours"). `page` (Django's Page) makes the count and
    the pager, else `total` says of how many. `exports` lists formats, "" for none; `noun` names the rows.
    `stack` for rows read one at a time when narrow, `wide` for eight columns and more, `live` for fresh marks.
    """
    request = context.get("request")
    shown, whole_body = content.split("<tfoot")[0].count("<tr"), "<tbody" in content
    return draw(
        "data_table",
        {
            **{key: value for key, value in locals().items() if key not in {"context", "request"}},
            "heads": heads(request, columns, sort),
            "export_links": exports_of(request, exports, noun),
            "total_noun": _one(noun) if total == 1 else noun,
            "previous": query(request, page=page.previous_page_number()) if page and page.has_previous() else "",
            "next": query(request, page=page.next_page_number()) if page and page.has_next() else "",
        },
    )


@register.simple_tag(takes_context=True)
def exports(context: Context, kinds: str = "csv,json", noun: str = "rows") -> SafeString:
    """Draw the export links of this view."""
    return draw("exports", {"export_links": exports_of(context.get("request"), kinds, noun)})


@register.simple_block_tag(takes_context=True)
def filters(context: Context, content: str, target: str = "", url: str = "") -> SafeString:
    """Hold filters: a GET form that renews `target` (a CSS selector) and the address; works without script."""
    request = context.get("request")
    path = url or (request.path if request else "")
    kept = [(k, v) for k, v in _kept(request, content)]
    return draw("filters", {"content": content, "target": target, "path": path, "kept": kept})


def _kept(request: HttpRequest | None, content: str) -> list[tuple[str, str]]:
    if request is None:
        return []
    return [
        (key, value)
        for key, values in request.GET.lists()
        for value in values
        if key not in {PAGE, FORMAT} and f'name="{key}"' not in content
    ]


@register.simple_tag(takes_context=True)
def seg(context: Context, param: str, label: str, options: Sequence[Any], current: str | None = None) -> SafeString:
    """Draw segmented links of one parameter: options are (value, words) or (value, words, count).

    `current` is the value in force, where the page leaves out what it does not know (`offers`).
    """
    request = context.get("request")
    options, chosen, note = offer(request, param, label, options, current)
    items = [
        {
            "url": query(request, **{param: option[0] or None}),
            "words": option[1],
            "count": option[2] if len(option) > 2 else None,
            "on": str(option[0]) == chosen,
        }
        for option in options
    ]
    return draw("seg", {"label": label, "items": items, "note": note})


@register.simple_tag(takes_context=True)
def choose(
    context: Context, name: str, label: str, options: Sequence[tuple[Any, Any]], current: str | None = None
) -> SafeString:
    """Draw a filter's select: options (value, words); `current` as in `seg`."""
    options, chosen, note = offer(context.get("request"), name, label, options, current)
    return draw("choose", {"name": name, "label": label, "options": options, "chosen": chosen, "note": note})


@register.simple_tag(takes_context=True)
def tag(context: Context, text: str, param: str, name: str = "") -> SafeString:
    """Draw a removable filter; its cross drops `param`."""
    return format_html(
        '<span class="tag">{} <a href="{}" aria-label="Remove the filter {}">'
        '<svg class="icon" aria-hidden="true"><use href="#i-x"/></svg></a></span>',
        text, query(context.get("request"), **{param: None}), name or text,
    )  # fmt: skip


@register.simple_tag(takes_context=True)
def view_url(context: Context) -> SafeString:
    """Show the address of this view with Copy link."""
    request = context.get("request")
    return draw("view_url", {"path": request.get_full_path() if request else ""})


@register.simple_tag(takes_context=True)
def statebar(context: Context, items: Sequence[Any], label: str = "Jobs by state", param: str = "state") -> SafeString:
    """Draw counts by state that are also filters: items {state, label, count, when, share}."""
    request = context.get("request")
    chosen = set((request.GET.get(param, "") if request else "").split(",")) - {""}
    lines = [
        {
            "item": item,
            "url": query(request, **{param: _toggled(chosen, item["state"])}),
            "on": item["state"] in chosen,
        }
        for item in items
    ]
    return draw("statebar", {"lines": lines, "label": label})


def _toggled(chosen: set[str], state: str) -> str | None:
    return ",".join(sorted(chosen ^ {state})) or None

"""Audit: who did what to which thing, how it changed, and that the trail is whole."""

from collections.abc import Iterator
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import render

from portal.core import exports
from portal.core.models import AuditEvent
from portal.dashboard.audit.chain import chain_state
from portal.dashboard.audit.changes import Words, changes_of
from portal.dashboard.audit.reads import AuditFilter, visible_to
from principals.models import Lab
from principals.web import PageRequest, page

PAGE_SIZE = 50
MOST_EXPORTED = 100_000
MOST_KINDS = 100
COLUMNS = (
    "seq", "at", "actor_kind", "actor_label", "on_behalf_of", "verb", "object_kind", "object_id", "object_label",
    "lab_id", "payload", "request_id", "hash",
)  # fmt: skip
BY = {"agent": "agent", "user": "human"}


@page
def audit(request: PageRequest) -> HttpResponseBase:
    """List events by the filters of the address, newest first; `?format=csv|json` exports all pages."""
    visible = visible_to(request.actor)
    asked = AuditFilter.read(request.GET)
    found = asked.apply(visible).order_by("-at", "-pk")
    if wanted := request.GET.get("format"):
        return exports.stream(request, wanted, "audit", COLUMNS, _records(found))
    shown = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    events = list(shown.object_list)
    context = {
        "page": shown, "rows": [_row(event) for event in events], "asked": asked, "chain": chain_state(),
        "kinds": [("", "All"), *((kind, kind.replace("_", " ")) for kind in _distinct(visible, "object_kind"))],
        "verbs": [("", "All"), *((verb, _words(verb)) for verb in _distinct(visible, "verb"))],
        "labs": [("", "All"), *Lab.objects.visible_to(request.actor).values_list("name", "title")[:500]],
        "sees_all": request.actor.sees_facility,
    }  # fmt: skip
    return render(request, "audit/audit.html", context)


def _distinct(events: QuerySet[AuditEvent], column: str) -> list[str]:
    return list(events.order_by(column).values_list(column, flat=True).distinct()[:MOST_KINDS])


def _words(verb: str) -> str:
    return verb.replace(".", ": ", 1).replace("_", " ")


def _row(event: AuditEvent) -> dict[str, Any]:
    content, changes = event.payload or {}, changes_of(event)
    return {
        "event": event, "kind": BY.get(event.actor_kind, "unknown"),
        "kind_words": event.object_kind.replace("_", " "), "verb": _words(event.verb),
        "changes": changes, "is_cut": any(change.is_cut for change in changes), "reason": content.get("reason", ""),
        "erased": event.payload is None, "object": Words(event.object_label or event.object_id),
    }  # fmt: skip


def _records(events: QuerySet[AuditEvent]) -> Iterator[dict[str, Any]]:
    for event in events[:MOST_EXPORTED].iterator(chunk_size=1000):
        yield {name: getattr(event, name) for name in COLUMNS}

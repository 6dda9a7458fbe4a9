"""The two addresses: the list, and one incident with what can be done next."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from portal.core.errors import Conflict, DomainError, Invalid, NotFound
from portal.core.exports import KINDS, export
from principals import permissions
from principals.models import Lab
from principals.web import PageRequest, page
from security import selectors
from security.models import Incident
from security.models.choices import Kind, Severity
from security.selectors import IncidentFilter
from security.views import acts, detail

PAGE_SIZE = 25
COLUMNS = (
    "number", "title", "kind", "severity", "state", "cluster", "host", "lab", "agent", "login", "assignee", "opened",
    "due_at", "triaged_at", "contained_at", "closed_at", "closed_reason", "sightings", "last_seen",
)  # fmt: skip
KEPT = ("state", "severity", "kind", "lab", "who", "late", "month", "cluster", "from", "to", "sort", "page")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the list."""

    incident: Incident
    url: str
    meta: str
    current: bool = False


@require_GET
@page
def incidents(request: PageRequest) -> HttpResponseBase:
    """List incidents, the most urgent one open beside them; `?format=csv|json` exports what is listed."""
    asked = IncidentFilter.read(request.GET)
    found = selectors.incidents(request.actor, asked)
    if kind := request.GET.get("format"):
        return export(kind, "incidents", COLUMNS, _rows(found))
    context = _list(request, asked, found)
    if context["rows"]:
        context |= detail.context(request, context["rows"][0].incident, _kept(request))
    return render(request, "security/incidents.html", context | {"alone": False})


@require_http_methods(["GET", "HEAD", "POST"])
@page
def incident(request: PageRequest, pk: int) -> HttpResponseBase:
    """Show one incident; a POST does one act and comes back to it, or says why it could not."""
    shown = _visible(request, pk)
    if request.method != "POST":
        return _show(request, shown)
    try:
        done = acts.perform(request, shown)
    except (Conflict, Invalid) as error:
        return _show(request, _visible(request, pk), refusal=error)
    messages.success(request, done)
    # The fragment closes the panel the form was in: without one the browser keeps the old.
    return HttpResponseRedirect(f"{shown.get_absolute_url()}{_kept(request)}#inc-t")


def _visible(request: PageRequest, pk: int) -> Incident:
    related = ("cluster", "lab", "agent__owner", "agent__lab", "cluster_user", "assignee", "hold")
    found = Incident.objects.visible_to(request.actor).filter(pk=pk).select_related(*related).first()
    if found is None:
        raise NotFound(
            "There is no such incident, or none you may see.", code="incident_not_found",
            remedy="A person sees those about themselves, their agents and the labs they manage.",
        )  # fmt: skip
    return found


def _show(request: PageRequest, shown: Incident, refusal: DomainError | None = None) -> HttpResponse:
    asked = IncidentFilter.read(request.GET)
    context = _list(request, asked, selectors.incidents(request.actor, asked), shown.pk)
    context |= detail.context(request, shown, _kept(request), refusal) | {"alone": True}
    return render(request, "security/incidents.html", context, status=refusal.status if refusal else 200)


def _list(
    request: PageRequest, asked: IncidentFilter, found: QuerySet[Incident], current: int | None = None
) -> dict[str, Any]:
    counts = selectors.state_counts(request.actor, asked)
    kept = _kept(request)
    shown = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    first = shown.object_list[0].pk if current is None and shown.object_list else current
    words = ("open", "new", "triaged", "contained", *(("reopened",) if counts["reopened"] else ()), "closed")
    return {
        "asked": asked,
        "page": shown,
        "rows": [Row(each, f"{each.get_absolute_url()}{kept}", _meta(each), each.pk == first) for each in shown],
        "list_url": reverse("incidents"),
        "back_url": f"{reverse('incidents')}{kept}",
        **_links(request, shown),
        "deck": detail.deck(request.actor),
        "states": [(word, word.capitalize(), counts[word]) for word in words],
        "kinds": [("", "All kinds"), *Kind.choices],
        "severities": [("", "Any"), *reversed(Severity.choices)],
        "people": [("", "Anyone"), ("me", "Me"), ("nobody", "Nobody")],
        "labs": _labs(request),
        "sorts": [("due", "Least time first"), ("-severity", "Worst first"), ("-opened", "Newest first"),
                  ("-seen", "Seen last")],
        "can_act": permissions.can(request.actor, "incident.act"),
        "seen_words": f"Seen {asked.seen[0]} to {asked.seen[1]}" if asked.seen else "",
    }  # fmt: skip


def _links(request: PageRequest, shown: Page[Incident]) -> dict[str, Any]:
    """Return the addresses of the pages around this one, and of the exports, always of the list."""

    def at(**changes: Any) -> str:
        query = QueryDict(_kept(request).lstrip("?"), mutable=True)
        query.pop("page", None)
        query.update({name: str(value) for name, value in changes.items()})
        return f"{reverse('incidents')}?{query.urlencode()}"

    return {
        "previous_url": at(page=shown.previous_page_number()) if shown.has_previous() else "",
        "next_url": at(page=shown.next_page_number()) if shown.has_next() else "",
        "exports": [{"name": kind.upper(), "url": at(format=kind)} for kind in KINDS],
    }


def _meta(each: Incident) -> str:
    """Return whom it is about, where, how often it was seen, and who works on it."""
    who = each.agent or each.cluster_user
    where = each.host if each.sightings < 2 else f"{each.sightings} sightings"
    parts = (str(who) if who else "", where, str(each.assignee) if each.assignee else "nobody assigned")
    return " · ".join(part for part in parts if part)


def _labs(request: PageRequest) -> list[tuple[str, str]]:
    """Return the labs the viewer's incidents belong to; with one or none there is nothing to choose."""
    with_incidents = Incident.objects.visible_to(request.actor).order_by().values("lab")
    labs = list(Lab.objects.filter(pk__in=with_incidents).values_list("name", "title"))
    return [("", "All labs"), *labs] if len(labs) > 1 else []


def _kept(request: PageRequest) -> str:
    """Return the list's part of the address, so that a row and an act come back to the same list."""
    query = request.GET.copy()
    for name in set(query) - set(KEPT):
        del query[name]
    return f"?{query.urlencode()}" if query else ""


def _rows(found: QuerySet[Incident]) -> Iterator[dict[str, Any]]:
    for each in found.iterator(chunk_size=1000):
        row = {name: getattr(each, name, None) for name in COLUMNS}
        yield row | {
            "cluster": each.cluster.name,
            "lab": each.lab.name if each.lab else None,
            "agent": each.agent.name if each.agent else None,
            "login": each.cluster_user.login if each.cluster_user else None,
            "assignee": each.assignee.username if each.assignee else None,
        }

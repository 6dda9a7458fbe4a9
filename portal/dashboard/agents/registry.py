"""The registry: every agent somebody may see, filtered by the address."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from portal.core import clock, exports
from principals import selectors
from principals.engine.harnesses import harness_name, known_harnesses
from principals.models import Agent, Hold
from principals.web import PageRequest, page

PAGE_SIZE = 25
ORDERS = {
    "name": ("name",),
    "lab": ("lab__title", "name"),
    "seen": ("last_seen", "name"),
    "expires": ("expires", "name"),
}
HELD = "held"  # beside the statuses: active, and stopped by a hold
STATES = {Agent.Status.ACTIVE.value: "Active", HELD: "Held"} | dict(Agent.Status.choices)
EXPORTED = ("name", "status", "held", "harness", "autonomy", "owner", "lab", "expires", "last_seen", "purpose")


@page
def agents(request: PageRequest) -> HttpResponseBase:
    """List agents by status, harness, lab and words; `?format=csv|json` exports what the filters give."""
    visible = Agent.objects.visible_to(request.actor)
    found, sort = _sorted(_filtered(visible, request.GET), request.GET.get("sort", "name"))
    if wanted := request.GET.get("format"):
        return _export(found, wanted)
    rows = found.select_related("owner", "lab").annotate(
        open_sessions=Count("sessions", filter=Q(sessions__ended=None), distinct=True)
    )
    listed = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": listed,
        "rows": _rows(listed.object_list),
        "sort": sort,
        "states": _states(visible),
        "states_known": list(STATES),
        "harnesses": [("", "All"), *known_harnesses().items()],
        "labs": [("", "All"), *visible.order_by("lab__title").values_list("lab__name", "lab__title").distinct()],
        "now": clock.now(),
        "none_at_all": not visible.exists(),
    }
    return render(request, "agents/agents.html", context)


def _rows(agents: Iterable[Agent]) -> list[dict[str, Any]]:
    """Return agents with the state they are really in and what holds them: one query for holds."""
    listed = list(agents)
    holds = selectors.holds_on_agents(listed)
    return [
        {
            "agent": agent, "state": state_of(agent, holds[agent.pk]), "harness": harness_name(agent.harness),
            "hold": holds[agent.pk][0] if holds[agent.pk] and agent.status == Agent.Status.ACTIVE else None,
        }
        for agent in listed
    ]  # fmt: skip


def state_of(agent: Agent, holds: Iterable[Hold]) -> str:
    """Return the state to show of an agent: an active one that something holds cannot act."""
    kinds = {hold.kind for hold in holds}
    if agent.status != Agent.Status.ACTIVE or not kinds:
        return str(agent.status)
    return "aup_required" if kinds == {Hold.Kind.AUP} else "held"


def _filtered(rows: QuerySet[Agent], query: Any) -> QuerySet[Agent]:
    rows = rows.annotate(held=selectors.is_held())
    if asked := {one for one in query.get("status", "").split(",") if one in STATES}:
        active = Q(status=Agent.Status.ACTIVE)
        wanted = Q(status__in=asked - {Agent.Status.ACTIVE, HELD})
        wanted |= active & Q(held=False) if Agent.Status.ACTIVE in asked else Q(pk=None)
        wanted |= active & Q(held=True) if HELD in asked else Q(pk=None)
        rows = rows.filter(wanted)
    if harness := query.get("harness"):
        rows = rows.filter(harness=harness)
    if lab := query.get("lab"):
        rows = rows.filter(lab__name=lab)
    if words := query.get("q", "").strip():
        rows = rows.filter(Q(name__icontains=words) | Q(owner__username__icontains=words) | Q(purpose__icontains=words))
    return rows


def _sorted(rows: QuerySet[Agent], wanted: str) -> tuple[QuerySet[Agent], str]:
    key = wanted.removeprefix("-")
    if key not in ORDERS:
        wanted = key = "name"
    order = ORDERS[key]
    if wanted.startswith("-"):
        order = (f"-{order[0]}", *order[1:])
    return rows.order_by(*order), wanted


def _states(visible: QuerySet[Agent]) -> list[dict[str, Any]]:
    """Count the agents by the state they are really in: an active one that something holds cannot act."""
    counts: Counter[str] = Counter()
    by_status = visible.annotate(held=selectors.is_held()).values_list("status", "held")
    for status, held, number in by_status.annotate(number=Count("pk", distinct=True)).order_by():
        counts[HELD if held and status == Agent.Status.ACTIVE else status] += number
    return [
        {"state": state, "label": label, "count": counts[state], "when": "", "share": None}
        for state, label in STATES.items()
    ]


def _export(rows: QuerySet[Agent], wanted: str) -> HttpResponse:
    held = set(rows.filter(selectors.is_held()).values_list("pk", flat=True))
    records = (
        {
            "name": agent.name, "status": agent.status, "held": agent.pk in held,
            "harness": harness_name(agent.harness), "autonomy": agent.autonomy, "owner": agent.owner.username,
            "lab": agent.lab.name, "expires": agent.expires, "last_seen": agent.last_seen, "purpose": agent.purpose,
        }
        for agent in rows.select_related("owner", "lab")
    )  # fmt: skip
    return exports.export(wanted, "agents", EXPORTED, records)

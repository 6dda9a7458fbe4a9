"""Search over agents, jobs, labs and incidents, as the viewer may see them; and the way home by role."""

import re
from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from portal.dashboard import shell
from portal.dashboard.jobs.cells import rows_of
from principals.actors import Actor
from principals.models import Agent, Lab
from principals.web import PageRequest, page
from security.models import Incident
from telemetry import selectors

MOST = 20
LONGEST = 100
_NUMBER = re.compile(r"(?:INC-)?0*(\d{1,9})\Z", re.IGNORECASE)


@page
def home(request: PageRequest) -> HttpResponseBase:
    """Go to where this person's day begins."""
    if shell.role_of(request.user) == shell.MEMBER:
        return redirect("my-lab")
    return redirect(shell.url_or_none("overview") or "live-jobs")


@page
def search(request: PageRequest) -> HttpResponseBase:
    """Find agents and labs by part of the name, incidents by number or title, jobs by their exact id."""
    words = request.GET.get("q", "").strip()[:LONGEST].replace("\0", "")
    found = _find(request.actor, words) if words else {}
    context = {"words": words, **found, "nothing": not any(found.values()), "most": MOST}
    return render(request, "search.html", context)


def _find(actor: Actor, words: str) -> dict[str, list[Any]]:
    agents = Agent.objects.visible_to(actor).filter(name__icontains=words).select_related("owner", "lab")
    labs = Lab.objects.visible_to(actor)
    return {
        "jobs": rows_of(selectors.find_by_id(actor, words, limit=MOST), actor),
        "agents": list(agents.order_by("name")[:MOST]),
        "labs": list((labs.filter(title__icontains=words) | labs.filter(name__icontains=words)).distinct()[:MOST]),
        "incidents": _incidents(actor, words),
    }


def _incidents(actor: Actor, words: str) -> list[Incident]:
    visible = Incident.objects.visible_to(actor).select_related("lab")
    number = _NUMBER.match(words)
    if number:
        return list(visible.filter(pk=int(number[1])))
    return list(visible.filter(title__icontains=words).order_by("-opened")[:MOST])

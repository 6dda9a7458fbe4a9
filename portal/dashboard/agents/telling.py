"""What an agent's harness told: the figure behind its panel, and its person's yes or no."""

from django.contrib import messages
from django.http import JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from portal.core.errors import NotAllowed
from portal.dashboard.agents.actions import find_agent
from portal.dashboard.telling import telling_figure
from principals.web import PageRequest, page
from telemetry import services

AGREED = "Your agents’ harnesses may tell what they count. The panel below says how to set one up."
DECLINED = "Nothing more is taken of your agents’ harnesses, and what was kept of them is deleted."


@page
def figure(request: PageRequest, name: str) -> HttpResponseBase:
    """Answer the figure of what an agent's harness cost, or wrote, a day."""
    return JsonResponse(telling_figure(request.actor, find_agent(request, name)))


@require_POST
@page
def choose(request: PageRequest, name: str) -> HttpResponseBase:
    """Agree to harness telemetry, or decline it: for all agents of the person who answers for this one."""
    agent = find_agent(request, name)
    if agent.owner != request.user:
        raise NotAllowed(
            "Only the person who answers for an agent decides this, for all of theirs.", code="not_owner",
            remedy=f"Ask {agent.owner.username}.",
        )  # fmt: skip
    agreed = request.POST.get("agreed") == "yes"
    services.choose_harness_telemetry(actor=request.actor, agreed=agreed)
    messages.success(request, AGREED if agreed else DECLINED)
    return redirect(f"{agent.get_absolute_url()}#telemetry")

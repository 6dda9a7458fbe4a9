"""Handing an agent over: asked for, agreed to or ended on its page."""

from typing import Any

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from portal.core.errors import Invalid
from portal.dashboard.agents.actions import find_agent
from portal.dashboard.agents.forms import HandoverForm
from principals import permissions, selectors
from principals import services as principal_services
from principals.actors import Actor
from principals.models import Agent, AgentHandover
from principals.web import PageRequest, page

DONE = "{agent} is {taker}’s now. Its tokens are revoked, and the AUP is to be accepted for it anew."
OPEN = "{agent} passes to {taker} once both sides agree."


def handover_panel(actor: Actor, agent: Agent) -> dict[str, Any] | None:
    """Return what an agent's page says of handing it over, and what the person may do; None where nothing of it."""
    if agent.status == Agent.Status.RETIRED or not actor.is_person or actor.user is None:
        return None
    open_one = agent.handovers.filter(state=AgentHandover.State.OPEN).select_related("giver", "taker").first()
    may = permissions.can(actor, "agent.hand_over", agent)
    left = selectors.owner_left(agent)
    if open_one is None:
        return {"form": HandoverForm(agent=agent), "left": left} if may else None
    mine = {"giver": open_one.giver_id == actor.user.pk and not left, "taker": open_one.taker_id == actor.user.pk}
    staff = permissions.can(actor, "agent.approve_for_facility", agent)
    stands_in = left and permissions.can(actor, "agent.approve_for_lab", agent)
    gives, takes = mine["giver"] or staff or stands_in, mine["taker"] or staff
    asked = (gives and not open_one.giver_agreed) or (takes and not open_one.taker_agreed)
    return {"open": open_one, "left": left, "may_agree": asked, "may_close": may or any(mine.values())}


@require_POST
@page
def ask(request: PageRequest, name: str) -> HttpResponseBase:
    """Ask that somebody else of the lab answers for an agent."""
    agent = find_agent(request, name)
    permissions.require(request.actor, "agent.hand_over", agent)
    form = HandoverForm(request.POST, agent=agent)
    if not form.is_valid():
        raise Invalid("Choose somebody of its lab.", code="owner_outside_lab", remedy="Go back and choose.")
    asked = principal_services.ask_handover(actor=request.actor, agent=agent, taker=form.cleaned_data["taker"])
    return _told(request, agent, asked)


@require_POST
@page
def settle(request: PageRequest, name: str, pk: int) -> HttpResponseBase:
    """Agree to a handover, or end it."""
    agent = find_agent(request, name)
    found = get_object_or_404(AgentHandover.objects.select_related("agent__lab", "agent__owner", "giver", "taker"),
                              agent=agent, pk=pk)  # fmt: skip
    if request.POST.get("agree") == "yes":
        return _told(request, agent, principal_services.agree_handover(actor=request.actor, handover=found))
    principal_services.close_handover(actor=request.actor, handover=found)
    messages.success(request, f"{agent.name} stays {found.giver.username}’s.")
    return redirect(agent)


def _told(request: PageRequest, agent: Agent, handover: AgentHandover) -> HttpResponseBase:
    words = DONE if handover.state == AgentHandover.State.DONE else OPEN
    messages.success(request, words.format(agent=agent.name, taker=handover.taker.username))
    return redirect(agent)

"""The semester's roll-over: a lab's agents on one page, each renewed, retired, or left as it is."""

from typing import Any

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from portal.core.errors import DomainError
from portal.dashboard.agents.forms import RenewForm, end_of_day
from portal.dashboard.formats import counted
from principals import permissions, selectors
from principals import services as principal_services
from principals.engine.harnesses import harness_name
from principals.models import Agent, Lab
from principals.web import PageRequest, add_refusal, page

CHOICES = (("renew", "Renew"), ("retire", "Retire"), ("leave", "Leave"))


@page
def roll_over(request: PageRequest, lab: str) -> HttpResponseBase:
    """Show the lab's agents with a choice for each, and do what was chosen, all of it or nothing."""
    chosen = get_object_or_404(Lab.objects.filter(pk__in=request.actor.member_lab_ids), name=lab)
    permissions.require(request.actor, "lab.manage", chosen, remedy="Ask the lab’s PI or a manager.")
    if request.method != "POST":
        return _show(request, chosen, RenewForm())
    form = RenewForm(request.POST)
    if not form.is_valid():
        return _show(request, chosen, form, status=422)
    wanted = {agent.pk: request.POST.get(f"agent-{agent.pk}", "leave") for agent in chosen.agents.all()}
    try:
        done = principal_services.roll_over_lab(
            actor=request.actor, lab=chosen, expires=end_of_day(form.cleaned_data["expires"]),
            renew=[pk for pk, what in wanted.items() if what == "renew"],
            retire=[pk for pk, what in wanted.items() if what == "retire"],
        )  # fmt: skip
    except DomainError as error:
        add_refusal(form, error)
        return _show(request, chosen, form, status=error.status)
    words = f"{counted(done.renewed, 'agent')} renewed, {done.retired} retired, {done.left} left as they are."
    messages.success(request, words)
    return redirect(f"{reverse('my-lab')}?lab={chosen.name}")


def _show(request: PageRequest, lab: Lab, form: RenewForm, *, status: int = 200) -> HttpResponseBase:
    agents = lab.agents.exclude(status=Agent.Status.RETIRED).select_related("owner").order_by("name")
    members = set(lab.memberships.filter(user__is_active=True).values_list("user_id", flat=True))
    context = {
        "lab": lab,
        "form": form,
        "rows": [_row(agent, request, left=agent.owner_id not in members) for agent in agents],
        "remind_at": selectors.REMIND_AT[0],
    }
    return render(request, "my_lab/roll_over.html", context, status=status)


def _row(agent: Agent, request: PageRequest, *, left: bool) -> dict[str, Any]:
    # Whose owner left cannot act: handed over first, or left as it is.
    offered = "leave" if left or agent.status != Agent.Status.ACTIVE else "renew"
    chosen = request.POST.get(f"agent-{agent.pk}", offered)
    options = [(value, label, value == chosen) for value, label in CHOICES]
    return {"agent": agent, "harness": harness_name(agent.harness), "left": left, "options": options}

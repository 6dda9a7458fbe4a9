"""The pass of an agent that is being registered: what the form says so far, assessed as it will be."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from policies import services as policy_services
from portal.dashboard.agents.forms import RegisterForm
from principals import selectors
from principals import services as principal_services
from principals.models import Agent, AgentApproval, Lab
from principals.web import PageRequest, page


@page
def show_preview(request: PageRequest, lab: str) -> HttpResponseBase:
    """Answer the pass for what the form holds; the page asks again whenever a field changes."""
    chosen = get_object_or_404(Lab.objects.filter(pk__in=request.actor.member_lab_ids), name=lab)
    form = RegisterForm(request.GET, lab=chosen, aup=policy_services.current_aup())
    return render(request, "my_lab/pass.html", {"lab": chosen, "preview": preview_of(form)})


def preview_of(form: RegisterForm) -> dict[str, Any]:
    """Return the pass of what a form holds, typed or offered; what cannot be is left as the form offers it."""
    agent = Agent(autonomy=_autonomy(form), hosts=_names(form, "hosts"), partitions=_names(form, "partitions"))
    risk = selectors.risk_of(agent)
    owner = form["owner"].value() or ""
    known = form.fields["owner"].queryset.filter(username=owner).exists()  # type: ignore[attr-defined]
    return {
        "agent": agent,
        "owner": owner if known else "",
        "tier": risk.tier.value.capitalize(),
        "reasons": [{"weight": reason.points, "text": reason.text} for reason in risk.reasons],
        "foot": risk.sentence,
        "waits_for_staff": AgentApproval.Kind.STAFF in selectors.approvals_needed(agent),
        "token_days": principal_services.longest_life_days(agent),
    }


def _autonomy(form: RegisterForm) -> str:
    said = form["autonomy"].value()
    return said if said in Agent.Autonomy.values else Agent.Autonomy.SUPERVISED


def _names(form: RegisterForm, name: str) -> list[str]:
    said: list[str] = form.fields[name].to_python(form[name].value()) or []
    return said

"""The page of the acceptable-use policy."""

from django.http.response import HttpResponseBase
from django.shortcuts import render

from policies import services as policy_services
from policies.engine.aup import render_agent_text
from policies.models import AupAcceptance, AupVersion
from principals.models import Agent
from principals.web import PageRequest, page


@page
def aup(request: PageRequest) -> HttpResponseBase:
    """Show the policy clause by clause, how each is checked, the text agents get, and who has not accepted it."""
    current = policy_services.current_aup()
    agents = Agent.objects.visible_to(request.actor).exclude(status=Agent.Status.RETIRED)
    accepted = AupAcceptance.objects.filter(version=current).values("agent")
    context = {
        "version": current,
        "policy": current.policy,
        "agent_text": render_agent_text(current.policy),
        "versions": AupVersion.objects.all(),
        "waiting": agents.exclude(pk__in=accepted).select_related("owner", "lab").order_by("lab__title", "name")[:50],
        "waiting_count": agents.exclude(pk__in=accepted).count(),
        "agent_count": agents.count(),
    }
    return render(request, "policies/aup.html", context)

"""What people do to an agent on its page. Each is a POST, goes through one service, and comes back to the page."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from policies import services as policy_services
from policies.models import How
from portal.core.errors import Invalid
from portal.dashboard import once
from portal.dashboard.agents.forms import RenewForm, TokenForm, end_of_day, reason_form, reason_of
from portal.dashboard.components.words import facility_zone
from principals import services as principal_services
from principals.models import Agent, AgentToken
from principals.services.tokens.issuing import IssuedToken
from principals.web import PageRequest, page


def find_agent(request: PageRequest, name: str) -> Agent:
    """Return an agent the person may see, or answer 404."""
    agents = Agent.objects.visible_to(request.actor).select_related("owner", "lab", "requested_by")
    return get_object_or_404(agents, name=name)


@require_POST
@page
def approve(request: PageRequest, name: str) -> HttpResponseBase:
    """Approve a requested agent."""
    agent = principal_services.approve_agent(actor=request.actor, agent=find_agent(request, name))
    waits = agent.status == Agent.Status.REQUESTED
    messages.success(request, f"{agent.name} waits for staff." if waits else f"{agent.name} is active.")
    return redirect(agent)


@require_POST
@page
def accept_aup(request: PageRequest, name: str) -> HttpResponseBase:
    """Accept the current AUP for an agent that is held for it."""
    agent = find_agent(request, name)
    version = request.POST.get("version", "")
    policy_services.accept_aup(actor=request.actor, agent=agent, version=version, how=How.AGENT_PAGE)
    messages.success(request, f"AUP {version} is accepted for {agent.name}.")
    return redirect(agent)


@require_POST
@page
def suspend(request: PageRequest, name: str) -> HttpResponseBase:
    """Suspend an agent: the kill switch."""
    form = reason_form(request)
    agent = principal_services.suspend_agent(
        actor=request.actor, agent=find_agent(request, name), reason=form.cleaned_data["reason"], until=form.until()
    )
    messages.success(request, f"{agent.name} is suspended. Its tokens answer 403; its jobs in Slurm go on.")
    return redirect(agent)


def _with_reason(act: Callable[..., Agent], done: str) -> Callable[..., HttpResponseBase]:
    @require_POST
    @page
    def view(request: PageRequest, name: str) -> HttpResponseBase:
        reason = reason_of(request)
        agent = act(actor=request.actor, agent=find_agent(request, name), reason=reason)
        messages.success(request, done.format(agent=agent.name))
        return redirect(agent)

    return view


resume = _with_reason(principal_services.resume_agent, "{agent} works again.")
retire = _with_reason(principal_services.retire_agent, "{agent} is retired; its tokens are revoked.")


@require_POST
@page
def renew(request: PageRequest, name: str) -> HttpResponseBase:
    """Move the end of an agent's registration."""
    form = RenewForm(request.POST)
    if not form.is_valid():
        raise Invalid("Choose an end within a year from now.", code="expiry_out_of_range", remedy="Go back and try.")
    agent = principal_services.renew_agent(
        actor=request.actor, agent=find_agent(request, name), expires=end_of_day(form.cleaned_data["expires"])
    )
    day = agent.expires.astimezone(facility_zone())
    messages.success(request, f"The registration of {agent.name} ends on {day:%Y-%m-%d}.")
    return redirect(agent)


@never_cache
@require_POST
@page
def make_token(request: PageRequest, name: str) -> HttpResponseBase:
    """Make a token and show it, this once."""
    agent = find_agent(request, name)
    if once.is_repeated(request):
        return show_no_more(request, agent)
    form = TokenForm(request.POST)
    if not form.is_valid():
        raise Invalid(
            "Choose at least one thing the token may do.", code="scope_missing", remedy="Go back and tick one."
        )
    data = form.cleaned_data
    issued = principal_services.issue_agent_token(
        actor=request.actor, agent=agent, label=data["label"], scope_names=data["scopes"],
        network_ranges=data["networks"],
    )  # fmt: skip
    return show_token(request, agent, issued)


def show_no_more(request: PageRequest, agent: Agent) -> HttpResponseBase:
    """Lead whoever reloads the page of a token to its agent, and say how to get another."""
    messages.info(
        request, f"The token of {agent.name} was shown once and cannot be shown again. If it is lost, make another "
        "under “Make a token” and revoke the first.",
    )  # fmt: skip
    return redirect(agent)


def show_token(request: PageRequest, agent: Agent, issued: IssuedToken, old: AgentToken | None = None) -> HttpResponse:
    """Render the one page that ever holds the plain token; `old`: the one that it replaces."""
    once.remember(request)
    context = {
        "agent": agent,
        "token": issued.plain,
        "row": issued.row,
        "old": old,
        "base_url": request.build_absolute_uri("/"),
    }
    response = render(request, "agents/token_once.html", context)
    response["Cache-Control"] = "no-store"
    return response


@never_cache
@require_POST
@page
def rotate_token(request: PageRequest, name: str, key: str) -> HttpResponseBase:
    """Roll a token over and show the new one, this once."""
    agent = find_agent(request, name)
    token = find_token(agent, key)
    if once.is_repeated(request):
        return show_no_more(request, agent)
    issued = principal_services.rotate_agent_token(actor=request.actor, token=token)
    token.refresh_from_db(fields=["expires"])
    return show_token(request, agent, issued, old=token)


def find_token(agent: Agent, key: str) -> AgentToken:
    """Return a token of an agent, or answer 404."""
    return get_object_or_404(AgentToken.objects.select_related("agent"), agent=agent, key=key)


@require_POST
@page
def revoke_token(request: PageRequest, name: str, key: str) -> HttpResponseBase:
    """Revoke one token; with `both` also those it was rolled over from and to."""
    agent = find_agent(request, name)
    ended = principal_services.revoke_agent_token(
        actor=request.actor, token=find_token(agent, key), with_rotation="both" in request.POST
    )
    are = f"Token {ended[0]} is" if len(ended) == 1 else f"Tokens {', '.join(ended)} are"
    messages.success(request, f"{are} revoked.")
    return redirect(agent)

"""My lab: what waits for a PI or lab manager, what the lab's agents did and cost, and registering one."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from memory.selectors import lessons_to_approve
from policies import selectors as policy_selectors
from policies import services as policy_services
from policies.models import How
from portal.core import clock
from portal.core.errors import DomainError
from portal.dashboard import figures, formats, once
from portal.dashboard.activity import lab_activity, studies_of
from portal.dashboard.agents.actions import find_agent, show_no_more, show_token
from portal.dashboard.agents.claims import own_strangers, prefilled, to_register
from portal.dashboard.agents.forms import DEFAULT_LIFE, RegisterForm
from portal.dashboard.agents.lab_figures import HOUR_S, LabFigures, lab_figures
from portal.dashboard.agents.own_stops import stop_panel
from portal.dashboard.agents.preview import preview_of
from portal.dashboard.components.words import facility_zone
from portal.dashboard.formats import date_range, day, money
from portal.dashboard.gpu_use import gpu_panel
from principals import permissions, selectors
from principals import services as principal_services
from principals.actors import Actor
from principals.models import Agent, AgentHandover, AgentSession, Hold, Lab, LabMembership
from principals.web import PageRequest, add_refusal, page
from telemetry.figures import Readings

PRICES = "{} a core-hour, {} a GPU-hour"
NEXT_STEPS = [
    {"title": "Staff approve", "note": "Only where its risk asks for it.", "at": ""},
    {"title": "You get a token", "note": "Shown once, with two lines to run on the login node.", "at": ""},
    {"title": "It checks in", "note": "When a session of it is declared; jobs in it carry its name.", "at": ""},
]
AS_HEAD = [{"title": "You register it", "note": "As PI or lab manager that is also the approval.", "at": "current"}]
AS_MEMBER = [
    {"title": "You register it", "note": "Your PI and the lab’s managers are told.", "at": "current"},
    {
        "title": "Your lab approves",
        "note": "Its PI or a manager, or at once the lab’s own rule.",
        "at": "",
    },
]
RULE_ON = "Agents of low risk that members register are active at once from now on."
RULE_OFF = "Every agent of a member waits for a PI or manager again."
IDLE_AFTER = timedelta(days=30)
ENDS_WITHIN = timedelta(days=30)


def _labs(actor: Actor) -> QuerySet[Lab]:
    return Lab.objects.filter(pk__in=actor.member_lab_ids)


def _chosen_lab(request: PageRequest) -> Lab | None:
    wanted = request.GET.get("lab")
    if wanted:
        return get_object_or_404(_labs(request.actor), name=wanted)
    # A PI's own lab first: that is what the page is for.
    mine = sorted(_labs(request.actor), key=lambda lab: (lab.pk not in request.actor.pi_lab_ids, lab.title))
    return mine[0] if mine else None


@page
def my_lab(request: PageRequest) -> HttpResponseBase:
    """Show the lab of the person; `?lab=` chooses among several."""
    lab = _chosen_lab(request)
    if lab is None:
        return render(request, "my_lab/none.html", {"studies": studies_of(request.actor)})
    initial: dict[str, Any] = {"owner": request.user.username}
    if session := to_register(request.actor, request.GET.get("session")):
        initial |= prefilled(session, lab)
    form = RegisterForm(lab=lab, aup=policy_services.current_aup(), initial=initial)
    return _show(request, lab, form)


@never_cache
@require_POST
@page
def register(request: PageRequest, lab: str) -> HttpResponseBase:
    """Register an agent and accept the AUP for it; an agent that is active at once gets its first token, shown once."""
    chosen = get_object_or_404(_labs(request.actor), name=lab)
    if once.is_repeated(request):
        return show_no_more(request, find_agent(request, request.POST["name"].strip()))
    form = RegisterForm(request.POST, lab=chosen, aup=policy_services.current_aup())
    if not form.is_valid():
        return _show(request, chosen, form, status=422)
    try:
        agent = _register(request.actor, chosen, form)
    except DomainError as error:
        add_refusal(form, error)
        return _show(request, chosen, form, status=error.status)
    if agent.status == Agent.Status.ACTIVE:
        return show_token(request, agent, principal_services.issue_agent_token(actor=request.actor, agent=agent))
    messages.success(request, f"{agent.name} is registered and waits for approval.")
    return redirect(agent)


@require_POST
@page
def set_rule(request: PageRequest, lab: str) -> HttpResponseBase:
    """Switch the lab's own rule for agents of low risk on or off."""
    chosen = get_object_or_404(_labs(request.actor), name=lab)
    on = request.POST.get("on") == "yes"
    principal_services.set_low_risk_rule(actor=request.actor, lab=chosen, on=on)
    messages.success(request, RULE_ON if on else RULE_OFF)
    return redirect(f"{reverse('my-lab')}?lab={chosen.name}#rule")


def _register(actor: Actor, lab: Lab, form: RegisterForm) -> Agent:
    session = to_register(actor, form.cleaned_data["session"])
    with transaction.atomic():
        agent = principal_services.register_agent(
            actor=actor, lab=lab, owner=form.cleaned_data["owner"], registration=form.registration()
        )
        version = form.cleaned_data["aup_version"]
        policy_services.accept_aup(actor=actor, agent=agent, version=version, how=How.REGISTRATION)
        if session:
            earlier = form.cleaned_data["earlier"]
            principal_services.claim_session(actor=actor, session=session, agent=agent, with_earlier=earlier)
    return agent


def _show(request: PageRequest, lab: Lab, form: RegisterForm, *, status: int = 200) -> HttpResponseBase:
    actor = request.actor
    if not permissions.can(actor, "lab.look", lab):
        raise Http404
    looks = permissions.can(actor, "lab.look_at_jobs", lab)
    found = lab_figures(actor, lab) if looks else None
    manages = permissions.can(actor, "lab.manage", lab)
    session = to_register(actor, str(form["session"].value() or ""))
    context = {
        "claimed": session,
        "claimed_earlier": principal_services.earlier_than(session).count() if session else 0,
        "own_strangers": own_strangers(actor),
        "lab": lab,
        "labs": _labs(actor),
        "role": LabMembership.objects.filter(lab=lab, user=actor.user).values_list("role", flat=True).first(),
        "people": lab.memberships.count(),
        "accounts": sorted(set(lab.accounts.values_list("name", flat=True))),
        "todo": [*offered(actor, lab), *(todo(lab) if manages else own_endings(actor, lab))],
        "renew_until": (clock.now() + DEFAULT_LIFE).astimezone(facility_zone()).date(),
        "lessons": lessons_to_approve(actor).filter(lab=lab) if manages else [],
        "manages": manages,
        "figures": found,
        "gpu_use": gpu_panel(Readings(found.scope)) if found else None,
        "studies": studies_of(actor),
        "activity": lab_activity(actor, lab) if looks else None,
        "strangers": unregistered_sessions(actor, lab),
        "agent_count": lab.agents.exclude(status=Agent.Status.RETIRED).count(),
        "trial_budget": policy_selectors.trial_budget(request.user, lab),
        "form": form,
        "hour_fields": [form["days"], form["start"], form["end"]],
        "zone": settings.FACILITY_TIME_ZONE,
        "may_set_rule": permissions.can(actor, "lab.set_rule", lab),
        "stopping": stop_panel(actor, lab),
        "rule_holds": selectors.rule_holds(lab),
        "aup": policy_services.current_aup(),
        "next_steps": [*(AS_HEAD if manages else AS_MEMBER), *NEXT_STEPS],
        "price_note": PRICES.format(money(settings.PRICE_CORE_HOUR, 3), money(settings.PRICE_GPU_HOUR, 2)),
        "preview": preview_of(form, lab),
        **(_costs(found) if found else {}),
        "now": clock.now(),
    }
    return render(request, "my_lab/my_lab.html", context, status=status)


def _costs(found: LabFigures) -> dict[str, Any]:
    """Return the words and the table behind the cost chart."""
    by_day = list(zip(found.period.days, found.agent_cost_by_day, found.people_cost_by_day, strict=True))
    agents, people = sum(found.agent_cost_by_day), sum(found.people_cost_by_day)
    spent = [(agent, person) for _, agent, person in by_day if agent or person]
    dearer = sum(agent > person for agent, person in spent)
    on_days = formats.on_days(dearer, len(spent), "with costs")
    return {
        "lost_core_hours": found.agents.ended_lost_core_s / HOUR_S,
        "cost_title": f"Agents cost more than people {on_days}" if agents else "No agent cost anything",
        "cost_sub": f"A day, {date_range(found.period.first, found.period.last)}.",
        "cost_label": f"Lines of cost a day: agents {money(agents)} in all, people {money(people)}.",
        "cost_numbers": {
            "head": ["Day", "Agents", "People"],
            "rows": [[day(at), money(agent), money(person)] for at, agent, person in by_day],
        },
    }


@page
def costs(request: PageRequest, lab: str) -> HttpResponseBase:
    """Answer the figure of what a lab's agents and people cost a day."""
    chosen = get_object_or_404(Lab.objects.visible_to(request.actor), name=lab)
    permissions.require(request.actor, "lab.look_at_jobs", chosen)
    found = lab_figures(request.actor, chosen)
    if found is None:
        raise Http404
    series = [
        figures.Series("Agents", "agent", found.agent_cost_by_day),
        figures.Series("People", "human", found.people_cost_by_day),
    ]
    return JsonResponse(figures.lines_by_day(found.period.days, series, prefix="$"))


def todo(lab: Lab) -> list[dict[str, Any]]:
    """Return what waits for a lab's PI or manager: approvals, agents held for the AUP, idle and ending ones."""
    waiting = []
    agents = list(lab.agents.exclude(status=Agent.Status.RETIRED).select_related("owner").prefetch_related("approvals"))
    holds, now = selectors.holds_on_agents(agents), clock.now()
    lapsing = set(
        policy_selectors.agents_without(policy_services.current_aup()).filter(lab=lab).values_list("pk", flat=True)
    )
    here = set(lab.memberships.filter(user__is_active=True).values_list("user_id", flat=True))
    for agent in agents:
        if agent.owner_id not in here:
            waiting.append({"kind": "left", "agent": agent})
        elif agent.status == Agent.Status.REQUESTED and "lab" in selectors.approvals_missing(agent):
            waiting.append({"kind": "approve", "agent": agent})
        elif any(hold.kind == Hold.Kind.AUP for hold in holds[agent.pk]):
            waiting.append({"kind": "aup", "agent": agent})
        elif agent.pk in lapsing:
            waiting.append({"kind": "aup_soon", "agent": agent})
        elif agent.expires < now + ENDS_WITHIN:
            waiting.append({"kind": "ends", "agent": agent})
        elif agent.last_seen is not None and agent.last_seen < now - IDLE_AFTER:
            waiting.append({"kind": "idle", "agent": agent})
    return waiting


def offered(actor: Actor, lab: Lab) -> list[dict[str, Any]]:
    """Return the agents of a lab that somebody asks this person to answer for."""
    asked = AgentHandover.objects.filter(
        taker=actor.user, agent__lab=lab, state=AgentHandover.State.OPEN, taker_agreed=False
    ).select_related("agent", "giver")
    return [{"kind": "take", "agent": each.agent, "handover": each} for each in asked]


def own_endings(actor: Actor, lab: Lab) -> list[dict[str, Any]]:
    """Return a member's own agents whose registration ends soon: who answers for one renews it."""
    soon = lab.agents.active().filter(owner=actor.user, expires__lt=clock.now() + ENDS_WITHIN)
    return [{"kind": "ends", "agent": agent} for agent in soon]


def unregistered_sessions(actor: Actor, lab: Lab) -> QuerySet[AgentSession]:
    """Return open sessions of harnesses under the lab's people that belong to no registered agent."""
    return (
        AgentSession.objects.visible_to(actor)
        .filter(
            kind=AgentSession.Kind.AGENT, agent=None, ended=None,
            cluster_user__user__memberships__lab=lab,
        )
        .exclude(cluster_user__user=actor.user)  # they claim these themselves, on the same page
        .select_related("cluster_user")
        .order_by("-started")[:5]
    )  # fmt: skip

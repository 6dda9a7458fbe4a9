"""The pass of an agent that is being registered: what the form says so far, assessed as it will be."""

from datetime import date, datetime
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from policies import services as policy_services
from portal.core import clock
from portal.dashboard.agents.forms import RegisterForm, end_of_day
from portal.dashboard.components.words import facility_zone
from principals import selectors
from principals import services as principal_services
from principals.engine.hours import read_hours
from principals.models import Agent, AgentApproval, Lab
from principals.web import PageRequest, page

_DAYS: Final = frozenset("0123456")


@page
def show_preview(request: PageRequest, lab: str) -> HttpResponseBase:
    """Answer the pass for what the form holds; the page asks again whenever a field changes."""
    chosen = get_object_or_404(Lab.objects.filter(pk__in=request.actor.member_lab_ids), name=lab)
    form = RegisterForm(request.GET, lab=chosen, aup=policy_services.current_aup())
    return render(request, "my_lab/pass.html", {"lab": chosen, "preview": preview_of(form, chosen)})


def preview_of(form: RegisterForm, lab: Lab) -> dict[str, Any]:
    """Return the pass of what a form holds, typed or offered; what cannot be is left as the form offers it."""
    agent = Agent(
        lab=lab, autonomy=_autonomy(form), hosts=_names(form, "hosts"), partitions=_names(form, "partitions"),
        accounts=_accounts(form), hours=_hours(form), expires=_expires(form),
    )  # fmt: skip
    risk = selectors.risk_of(agent)
    owner = form["owner"].value() or ""
    known = form.fields["owner"].queryset.filter(username=owner).exists()  # type: ignore[attr-defined]
    return {
        "agent": agent,
        "owner": owner if known else "",
        "tier": risk.tier.value.capitalize(),
        "reasons": [{"weight": reason.points, "text": reason.text} for reason in risk.reasons],
        "foot": risk.sentence,
        "hours": agent.working_hours,
        "by_rule": selectors.rule_approves(agent),
        "waits_for_staff": AgentApproval.Kind.STAFF in selectors.approvals_needed(agent),
        "token_days": principal_services.longest_life_days(agent),
    }


def _autonomy(form: RegisterForm) -> str:
    said = form["autonomy"].value()
    return said if said in Agent.Autonomy.values else Agent.Autonomy.SUPERVISED


def _accounts(form: RegisterForm) -> list[str]:
    if "accounts" not in form.fields:
        return []
    offered = dict(form.fields["accounts"].choices)  # type: ignore[attr-defined]
    return [name for name in form["accounts"].value() or [] if name in offered]


def _hours(form: RegisterForm) -> dict[str, Any]:
    said = {"days": [int(day) for day in form["days"].value() or [] if day in _DAYS], "zone": facility_zone().key}
    try:
        found = read_hours(said | {name: form[name].value() for name in ("start", "end")})
    except ValueError:
        return {}
    return found.as_json() if found else {}


def _expires(form: RegisterForm) -> datetime:
    try:
        day = form.fields["expires"].to_python(form["expires"].value())
    except ValidationError:
        day = None
    return end_of_day(day) if isinstance(day, date) and day.year > 1 else clock.now()


def _names(form: RegisterForm, name: str) -> list[str]:
    said: list[str] = form.fields[name].to_python(form[name].value()) or []
    return said

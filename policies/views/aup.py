"""Pages of the acceptable-use policy: the newest version, older ones with what changed, accepting, who has not."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_GET, require_POST

from policies import permissions, selectors
from policies import services as policy_services
from policies.engine import agents_md, aup_diff, bundle
from policies.engine.aup import Aup
from policies.engine.markdown import to_html
from policies.models import AupDraft, AupPersonAcceptance, AupVersion
from portal.core import clock, exports, problems, throttle
from portal.core.conditional import answer_once
from portal.core.errors import TooMany
from principals.actors import Actor
from principals.auth import client_address
from principals.engine import networks
from principals.models import Agent, Lab
from principals.web import PageRequest, page
from telemetry.selectors import Period

MOST_LABS = 10
MOST_WAITING = 50
DAYS = 30  # of compliance
ASKED_A_MINUTE = 60


@page
def aup(request: PageRequest) -> HttpResponseBase:
    """Show the newest version clause by clause, the text agents get, and who has not accepted it."""
    newest = policy_services.current_aup()
    agents = Agent.objects.visible_to(request.actor).exclude(status=Agent.Status.RETIRED)
    waiting = selectors.agents_without(newest).filter(pk__in=agents.values("pk"))
    writes = permissions.can(request.actor, "aup.publish")
    context = shown(newest.policy, newest) | {
        "versions": AupVersion.objects.all(),
        "mine": waiting.filter(owner=request.user).order_by("name"),
        "accepted": AupPersonAcceptance.objects.filter(version=newest, user=request.user).first(),
        "owns_agents": agents.filter(owner=request.user).exists(),
        "waiting": waiting.select_related("owner", "lab").order_by("lab__title", "name")[:MOST_WAITING],
        "waiting_count": waiting.count(),
        "agent_count": agents.count(),
        "labs": [(lab, selectors.accepting_in(lab, newest)) for lab in _managed(request.actor)],
        "may_write": writes,
        "may_look_at_labs": request.actor.sees_facility or bool(request.actor.visible_lab_ids),
        "may_export": permissions.can(request.actor, "aup.export"),
        "drafts": AupDraft.objects.select_related("written_by") if writes else [],
    }
    return render(request, "policies/aup.html", context)


def _managed(actor: Actor) -> list[Lab]:
    return list(Lab.objects.filter(pk__in=actor.managed_lab_ids).order_by("title")[:MOST_LABS])


def shown(policy: Aup, version: AupVersion | None = None) -> dict[str, Any]:
    """Return what a page needs to show a policy; its text is sanitised here and nowhere else."""
    now = clock.now()
    return {
        "policy": policy,
        "version": version,
        "text": mark_safe(to_html(policy.text)) if policy.text else "",  # noqa: S308 - `to_html` lets no HTML through
        "agent_text": agents_md.agents_md(policy, url=settings.BASE_URL),
        "now": now,
        "is_in_force": version is not None and version.effective <= now,
        "in_grace": version is not None and now < version.holds_from,
    }


@page
def aup_version(request: PageRequest, version: str) -> HttpResponseBase:
    """Show a version as it was published, and what changed against the one before or the one `?against=` names."""
    chosen = get_object_or_404(AupVersion, version=version)
    others = AupVersion.objects.exclude(pk=chosen.pk)
    wanted = request.GET.get("against")
    before = others.filter(pk__lt=chosen.pk).order_by("-pk").first()
    other = get_object_or_404(others, version=wanted) if wanted else before
    context = shown(chosen.policy, chosen) | {
        "other": other,
        "diff": aup_diff.compare(other.policy, chosen.policy) if other else None,
        "others": others,
    }
    return render(request, "policies/aup_version.html", context)


@require_POST
@page
def accept(request: PageRequest) -> HttpResponseBase:
    """Accept the newest version as a person and for one's own agents."""
    version = request.POST.get("version", "")[:40]
    accepted = policy_services.accept_aup_for_mine(actor=request.actor, version=version)
    names = ", ".join(acceptance.agent.name for acceptance in accepted)
    messages.success(request, f"AUP {version} is accepted by you{f' and for {names}' if names else ''}.")
    return redirect("aup")


@page
def acceptances(request: PageRequest) -> HttpResponseBase:
    """Hand out the acceptances as a file: who takes them away is noted first."""
    rows = policy_services.export_acceptances(actor=request.actor)
    return exports.export("csv", "aup-acceptances", selectors.EXPORTED, map(selectors.acceptance_fields, rows))


@page
def compliance(request: PageRequest) -> HttpResponseBase:
    """Show for a lab how its agents stand to each clause; `?lab=` chooses, staff any, others one they may look into."""
    actor = request.actor
    labs = Lab.objects.order_by("title") if actor.sees_facility else Lab.objects.filter(pk__in=actor.visible_lab_ids)
    wanted = request.GET.get("lab")
    chosen = get_object_or_404(labs, name=wanted) if wanted else labs.order_by("title").first()
    newest, period = policy_services.current_aup(), Period.last_days(DAYS)
    context = {
        "lab": chosen,
        "labs": labs.order_by("title").values_list("name", "title"),
        "version": newest,
        "period": period,
        "rows": selectors.compliance(actor, chosen, period, newest) if chosen else [],
    }
    return render(request, "policies/aup_compliance.html", context)


@require_GET
def agent_policy(request: HttpRequest) -> HttpResponseBase:
    """Answer the policy in force as JSON, to anybody: no lab, path, host or project is named in it."""
    caller = networks.caller_of(client_address(request))
    try:
        throttle.check("agent-policy", caller, limit=ASKED_A_MINUTE)
    except TooMany as error:
        return problems.from_error(error)
    policy, url = policy_services.aup_in_force().policy, settings.BASE_URL
    answer = JsonResponse(bundle.policy_document(policy, url=url, public=True))
    return answer_once(request, answer, cache="public, max-age=300")

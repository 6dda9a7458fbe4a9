"""One agent: its pass, what holds it, its sessions, jobs, tokens, findings and audit."""

from datetime import date, datetime
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http.response import HttpResponseBase
from django.shortcuts import render

from policies import permissions as policy_permissions
from policies import selectors as policy_selectors
from policies import services as policy_services
from policies.models import AupAcceptance
from portal.core import clock
from portal.core.models import AuditEvent
from portal.dashboard.activity import agent_activity
from portal.dashboard.agents.actions import find_agent
from portal.dashboard.agents.claims import claims_of
from portal.dashboard.agents.forms import ReasonForm, RenewForm, TokenForm, staff_words
from portal.dashboard.agents.handover import handover_panel
from portal.dashboard.agents.live import live_panel
from portal.dashboard.agents.registry import state_of
from portal.dashboard.audit import reads
from portal.dashboard.components.words import facility_zone
from portal.dashboard.formats import counted
from portal.dashboard.jobs.cells import RELATED, rows_of
from portal.dashboard.telling import telling_panel
from principals import permissions, selectors
from principals import services as principal_services
from principals.actors import Actor
from principals.engine import checking_in, tiers
from principals.engine.harnesses import harness_name
from principals.models import Agent, AgentSession, AgentToken, Hold
from principals.services.agents import RENEWED_FOR
from principals.web import PageRequest, page
from telemetry.models import Job
from telemetry.selectors import JobFilter, newest_first

ROWS = 6
AUDIT_ROWS = 10
VERBS = (
    "approve_for_lab",
    "approve_for_facility",
    "issue_token",
    "renew",
    "revoke_token",
    "suspend",
    "resume",
    "retire",
)
TIER_FOOT = {
    tiers.Tier.STANDARD: "Standard is below 3 points.",
    tiers.Tier.ELEVATED: "Elevated is 3 to 5 points.",
    tiers.Tier.RESTRICTED: "Restricted is 6 points and more.",
}


@page
def agent(request: PageRequest, name: str) -> HttpResponseBase:
    """Show one agent to whoever may see it; what they may do is on the page, nothing else."""
    found = find_agent(request, name)
    actor = request.actor
    risk = selectors.risk_of(found)
    jobs = jobs_of(found, actor)
    newest = newest_first(jobs.select_related(*RELATED), actor, JobFilter(agent=found.name))
    sessions = AgentSession.objects.visible_to(actor).filter(agent=found)
    may = {verb: permissions.can(actor, f"agent.{verb}", found) for verb in VERBS}
    may["accept_aup"] = policy_permissions.can(actor, "aup.accept", found)
    holds = list(selectors.holds_on_agent(found).order_by("placed_at"))
    suspensions = [hold for hold in holds if hold.kind == Hold.Kind.SUSPENSION]
    may["resume"] &= all(permissions.outranks(actor, found.lab_id, hold) for hold in suspensions)
    is_below = suspensions and all(permissions.stands_above(actor, found.lab_id, hold) for hold in suspensions)
    may["suspend"] &= found.status == Agent.Status.ACTIVE or bool(is_below)
    events = audit_of(found, actor)
    aup, acceptance = policy_services.current_aup(), _acceptance(found)
    context = {
        "agent": found,
        "state": state_of(found, holds),
        "harness": harness_name(found.harness),
        "may": may,
        "may_approve": _may_approve(found, may),
        "tier": risk.tier.value.capitalize(),
        "reasons": [{"weight": reason.points, "text": reason.text} for reason in risk.reasons],
        "tier_foot": f"{counted(risk.score, 'point')}: {TIER_FOOT[risk.tier]} {staff_words()} "
        f"Its tokens live {counted(principal_services.longest_life_days(found), 'day')} at most.",
        "working_hours": found.working_hours,
        "approvals": found.approvals.select_related("by"),
        "missing_approvals": selectors.approvals_missing(found) if found.status == Agent.Status.REQUESTED else set(),
        "holds": holds,
        "aup": aup,
        "acceptance": acceptance,
        "aup_waits": found.status != Agent.Status.RETIRED and (acceptance is None or acceptance.version != aup),
        "sessions": sessions.order_by("-started")[:ROWS],
        "session_count": sessions.count(),
        "activity": agent_activity(actor, found),
        "telling": telling_panel(actor, found),
        "checking_in": f"{checking_in.MEANING} {checking_in.WHO_DECLARES}",
        "jobs": rows_of(list(newest[:ROWS]), actor),
        "job_count": jobs.count(),
        "tokens": tokens_of(found)[: ROWS * 2] if _sees_tokens(actor, found) else [],
        "may_rotate": may["issue_token"] and found.status == Agent.Status.ACTIVE and not holds,
        "trial_budget": policy_selectors.trial_budget(found.owner, found.lab) if _sees_tokens(actor, found) else None,
        "token_form": TokenForm(),
        "reason_form": ReasonForm(),
        "renew_form": RenewForm(),
        "renew_until": _day(clock.now() + RENEWED_FOR),
        "claims": claims_of(actor, found),
        "live": live_panel(found),
        "handover": handover_panel(actor, found),
        "audit_entries": [audit_entry(event) for event in events[:AUDIT_ROWS]],
        "audit_count": events.count(),
        "now": clock.now(),
    }
    return render(request, "agents/agent.html", context)


def _day(at: datetime) -> date:
    return at.astimezone(facility_zone()).date()


def jobs_of(agent: Agent, actor: Actor) -> QuerySet[Job]:
    """Return the jobs taken to be this agent's, as far as the actor may see them."""
    return Job.objects.visible_to(actor).filter(agent=agent)


def tokens_of(agent: Agent) -> QuerySet[AgentToken]:
    """Return an agent's tokens, newest first, each with the key of what it replaces and of what replaces it.

    Of those only what works: `old_key` and `new_key` are None where there is nothing to revoke with it.
    """
    works = {"revoked_at": None, "expires__gt": clock.now()}
    old = AgentToken.objects.filter(pk=OuterRef("replaces_id"), **works)
    new = AgentToken.objects.filter(replaces=OuterRef("pk"), **works).order_by("-created")
    keys = {"old_key": Subquery(old.values("key")[:1]), "new_key": Subquery(new.values("key")[:1])}
    return agent.tokens.select_related("parent").annotate(**keys).order_by("-created")


def _acceptance(agent: Agent) -> AupAcceptance | None:
    return (
        AupAcceptance.objects.standing().filter(agent=agent).select_related("version", "user").order_by("-at").first()
    )


def audit_of(agent: Agent, actor: Actor) -> QuerySet[AuditEvent]:
    """Return what was done to an agent and by it, newest first: all to who answers for it, to others as on Audit."""
    answers = permissions.can(actor, "agent.suspend", agent)
    return (
        (AuditEvent.objects.all() if answers else reads.visible_to(actor))
        .filter(Q(object_kind="agent", object_id=str(agent.pk)) | Q(actor_kind="agent", actor_id=str(agent.pk)))
        .order_by("-at")
    )


def audit_entry(event: AuditEvent) -> dict[str, Any]:
    """Return an audit event as an entry of a timeline."""
    by = {"agent": "agent", "user": "human"}.get(event.actor_kind, "system")
    reason = (event.payload or {}).get("reason", "")
    place = f"#{event.seq}" if event.seq else "not sealed yet"
    words = f"{event.actor_label}: {event.verb.replace('.', ' ').replace('_', ' ')}"
    return {"at": event.at, "by": by, "what": words, "note": f"{reason} · {place}" if reason else place}


def _sees_tokens(actor: Actor, agent: Agent) -> bool:
    return actor.sees_facility or permissions.can(actor, "agent.issue_token", agent)


def _may_approve(agent: Agent, may: dict[str, bool]) -> bool:
    if agent.status != Agent.Status.REQUESTED:
        return False
    missing = selectors.approvals_missing(agent)
    by_kind: dict[str, Any] = {"lab": may["approve_for_lab"], "staff": may["approve_for_facility"]}
    return any(by_kind[kind] for kind in missing)

"""Sessions nobody had registered, on the page of the person under whose login name they ran: claimed, and undone."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from portal.dashboard.agents.actions import find_agent
from portal.dashboard.formats import counted
from principals import permissions
from principals import services as principal_services
from principals.actors import Actor
from principals.engine.agents import suggest_name
from principals.engine.harnesses import harness_name, known_harnesses
from principals.models import Agent, AgentSession, Lab, SessionClaim
from principals.services.sessions.recording import may_work_there
from principals.web import PageRequest, page

LISTED = 5  # kinds of unregistered sessions on the page
LOOKED_AT = 500  # sessions among which they are found


@dataclass(slots=True)
class Stranger:
    """Sessions of one harness under one login name that belong to no agent: the newest, and how many came before it."""

    session: AgentSession
    harness: str
    agents: list[Agent]
    earlier: int = 0


def own_strangers(actor: Actor) -> list[Stranger]:
    """Return what ran under a person's own login names without an agent, by harness and login name: three queries."""
    found: dict[tuple[int, str], Stranger] = {}
    sessions = principal_services.unregistered_of(actor).select_related("cluster_user", "cluster")[:LOOKED_AT]
    for session in sessions:
        if stranger := found.get((session.cluster_user_id, session.harness)):
            stranger.earlier += 1
        else:
            key = session.cluster_user_id, session.harness
            found[key] = Stranger(session, harness_name(session.harness), [])
    if found:
        agents = list(_agents(actor))
        for stranger in found.values():
            stranger.agents = [agent for agent in agents if _fits(agent, stranger.session)]
    return list(found.values())[:LISTED]


def _agents(actor: Actor) -> QuerySet[Agent]:
    mine = Agent.objects.filter(owner=actor.user, lab_id__in=actor.member_lab_ids)
    return mine.exclude(status=Agent.Status.RETIRED).order_by("name")


def _fits(agent: Agent, session: AgentSession) -> bool:
    return agent.harness == session.harness and may_work_there(agent, session)


def to_register(actor: Actor, wanted: str | None) -> AgentSession | None:
    """Return the session for which a registration is asked, if it is the person's own and without an agent."""
    if not (wanted and wanted.isdecimal() and len(wanted) < 19):
        return None
    return principal_services.unregistered_of(actor).filter(pk=int(wanted)).select_related("cluster_user").first()


def prefilled(session: AgentSession, lab: Lab) -> dict[str, Any]:
    """Return what a form of registration starts with, for a session that was seen."""
    taken = set(Agent.objects.filter(name__startswith=lab.name[:20]).values_list("name", flat=True))
    known = session.harness if session.harness in known_harnesses() else ""
    on_login_node = session.place not in (AgentSession.Place.JOB, AgentSession.Place.GATEWAY)
    return {
        "name": suggest_name(f"{lab.name}-{known or 'agent'}", taken),
        "harness": known,
        "hosts": [session.host] if on_login_node else [],
        "session": session.pk,
    }


@require_POST
@page
def claim(request: PageRequest, pk: int) -> HttpResponseBase:
    """Claim a session for an agent; earlier ones of the same harness and login name go along where that is ticked."""
    agent = find_agent(request, request.POST.get("agent", ""))
    session = get_object_or_404(
        AgentSession.objects.visible_to(request.actor).select_related("cluster_user", "cluster"), pk=pk
    )
    made = principal_services.claim_session(
        actor=request.actor, session=session, agent=agent, with_earlier=request.POST.get("earlier") == "on"
    )
    words = f"{counted(made.sessions.count(), 'session')} claimed for {agent.name}. Its jobs follow within a minute."
    messages.success(request, words)
    return redirect(f"{agent.get_absolute_url()}#claims")


@require_POST
@page
def undo(request: PageRequest, name: str, pk: int) -> HttpResponseBase:
    """Take a claim back."""
    agent = find_agent(request, name)
    made = get_object_or_404(SessionClaim.objects.select_related("agent"), agent=agent, pk=pk)
    left = principal_services.undo_claim(actor=request.actor, claim=made)
    messages.success(request, f"{counted(left, 'session')} taken back: no agent’s again.")
    return redirect(agent)


def claims_of(actor: Actor, agent: Agent) -> QuerySet[SessionClaim]:
    """Return the claims for an agent that stand, for those who answer for it."""
    if not (actor.sees_facility or permissions.can(actor, "agent.issue_token", agent)):
        return SessionClaim.objects.none()
    standing = SessionClaim.objects.filter(agent=agent, undone=None).select_related("by")
    return standing.annotate(number=Count("sessions")).order_by("-at")

"""The hold an incident keeps on an agent. Several incidents may share one; the last to let go lifts it."""

from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, Hold
from principals.services import holds
from security.models import Incident, IncidentEvent
from security.services import news

CODE = "agent_contained"


def place(actor: Actor, incident: Incident, agent: Agent, *, reason: str) -> Hold:
    """Hold an agent for an incident, inside the caller's transaction."""
    hold = holds.place_hold(
        actor=actor, subject_kind=Hold.Subject.AGENT, subject_id=agent.pk, kind=Hold.Kind.CONTAINMENT, code=CODE,
        reason=f"{agent.name} is contained while InfoSec looks into {incident.number}.",
        remedy="Its owner or PI answers InfoSec; the hold goes when the incident closes.",
    )  # fmt: skip
    if incident.hold_id == hold.pk:
        return hold
    Incident.objects.filter(pk=incident.pk).update(hold=hold)
    incident.hold = hold
    news.leave(
        actor, incident, IncidentEvent.Kind.HELD, verb="incident.contain", at=clock.now(), new=agent.name, text=reason
    )
    return hold


def release(actor: Actor, incident: Incident, *, reason: str) -> bool:
    """Let go of the agent, inside the caller's transaction; say whether this incident held one."""
    if incident.hold_id is None:
        return False
    # The row is the lock: of two incidents that let go at once, the second sees the first.
    hold = Hold.objects.select_for_update().get(pk=incident.hold_id)
    if not Incident.objects.filter(pk=incident.pk, hold=hold).update(hold=None):
        return False
    incident.hold = None
    is_last = not Incident.objects.filter(hold=hold).exists()
    if is_last and hold.lifted_at is None:
        holds.lift_hold(actor=actor, hold=hold, reason=reason or f"{incident.number} no longer needs it.")
    news.leave(
        actor, incident, IncidentEvent.Kind.RELEASED, verb="incident.release", at=clock.now(), text=reason,
        new="lifted" if is_last else "held for another incident",
    )  # fmt: skip
    return True

"""Working on incidents: states, assignment, notes. Every change is a conditional update: one row decides."""

from datetime import datetime
from typing import Any

from django.db import transaction

from portal.core import clock
from portal.core.errors import Conflict, Invalid
from principals import permissions
from principals.actors import Actor
from principals.models import User
from security.engine import incidents as rules
from security.models import Incident, IncidentEvent
from security.models.choices import State
from security.services import cleaning, holding, news

MAX_REASON, MAX_NOTE = 500, 4000
ASK = "Ask InfoSec."


def move_incident(
    *, actor: Actor, incident: Incident, to: str, reason: str = "", seen: str = "", at: datetime | None = None
) -> Incident:
    """Change an incident's state. Closing it releases the agent that was held for it.

    `seen` is the state the actor acted upon, where that was a page. `at` is for history being loaded. Errors:
    `Conflict` where somebody was faster or the step does not exist, `Invalid` where a reason is needed.
    """
    permissions.require(actor, "incident.act", incident, remedy=ASK)
    step = _step(incident, to, seen)
    reason = checked_reason(reason, needed=step.needs_reason)
    at = at or clock.now()
    with transaction.atomic():
        _apply(actor, incident, step, reason, at)
        if not incident.is_open:
            holding.release(actor, incident, reason=reason)
    return incident


def checked_reason(text: str, *, needed: bool = True) -> str:
    """Return a reason that may be stored. Errors: `Invalid` where it is needed and missing, or too long."""
    text = cleaning.clean_text(text)
    if needed and not text:
        raise Invalid("Say why.", code="reason_required", remedy="A sentence is enough.", extra={"field": "reason"})
    if len(text) > MAX_REASON:
        raise Invalid(f"At most {MAX_REASON} characters.", code="reason_too_long", extra={"field": "reason"})
    return text


def _step(incident: Incident, to: str, seen: str) -> rules.Transition:
    if seen and seen != incident.state:
        raise _moved_meanwhile(incident)
    if to not in State.values:
        raise Invalid("There is no such state.", code="state_unknown", remedy=f"One of: {', '.join(State.values)}.")
    step = rules.find_transition(rules.State(incident.state), rules.State(to))
    if step is None:
        words = ", ".join(each.target.value for each in rules.allowed_transitions(rules.State(incident.state)))
        raise Conflict(
            f"{incident.number} is {State(incident.state).label.lower()} and cannot become {State(to).label.lower()}.",
            code="transition_not_allowed", remedy=f"From here it can become: {words}.",
        )  # fmt: skip
    return step


def _moved_meanwhile(incident: Incident) -> Conflict:
    current = Incident.objects.filter(pk=incident.pk).values_list("state", flat=True).first() or incident.state
    return Conflict(
        f"Somebody else moved {incident.number} first: it is {State(current).label.lower()} now.",
        code="incident_moved", remedy="Look at it as it is now, then decide.",
    )  # fmt: skip


def _stamps(incident: Incident, step: rules.Transition, reason: str, at: datetime) -> dict[str, Any]:
    """Return the columns a step sets: the state, its times, when the next step is due."""
    target = step.target
    stamps: dict[str, Any] = {"state": State(target.value)}
    if target is rules.State.TRIAGED:
        stamps |= {"triaged_at": incident.triaged_at or at, "contained_at": None}
    elif target is rules.State.CONTAINED:
        stamps |= {"contained_at": at}
    elif target is rules.State.REOPENED:
        stamps |= {"reopened": at, "triaged_at": None, "contained_at": None, "closed_at": None, "closed_reason": ""}
    else:
        stamps |= {"closed_at": at, "closed_reason": reason}
    started = at if target is rules.State.REOPENED else incident.clock_from
    return stamps | {"due_at": rules.next_deadline(rules.Severity(incident.severity), target, started)}


def _apply(actor: Actor, incident: Incident, step: rules.Transition, reason: str, at: datetime) -> None:
    """Make one step inside the caller's transaction."""
    stamps = _stamps(incident, step, reason, at)
    if not Incident.objects.filter(pk=incident.pk, state=step.source.value).update(**stamps):
        raise _moved_meanwhile(incident)
    for name, value in stamps.items():
        setattr(incident, name, value)
    news.leave(
        actor, incident, IncidentEvent.Kind.MOVED, verb="incident.move", at=at,
        old=step.source.value, new=step.target.value, text=reason,
    )  # fmt: skip


def advance_to_contained(actor: Actor, incident: Incident, reason: str, at: datetime) -> None:
    """Take every step from where an incident stands to contained, inside the caller's transaction."""
    path = {rules.State.NEW: rules.State.TRIAGED, rules.State.REOPENED: rules.State.TRIAGED}
    while (state := rules.State(incident.state)) is not rules.State.CONTAINED:
        step = rules.find_transition(state, path.get(state, rules.State.CONTAINED))
        if step is None:
            raise Conflict(
                f"{incident.number} is closed.", code="incident_closed", remedy="Reopen it first, with a reason."
            )
        _apply(actor, incident, step, reason, at)


def assign(*, actor: Actor, incident: Incident, to: User | None, at: datetime | None = None) -> Incident:
    """Give an incident to somebody of InfoSec, or to nobody. Errors: `Invalid` for anybody else."""
    permissions.require(actor, "incident.act", incident, remedy=ASK)
    if to is not None and not (to.is_infosec and to.is_active):
        raise Invalid(f"{to.username} is not of InfoSec.", code="assignee_not_infosec", extra={"field": "to"})
    old, new = incident.assignee, to.username if to else ""
    if old == to:
        return incident
    with transaction.atomic():
        moved = Incident.objects.filter(pk=incident.pk, assignee=old).update(assignee=to)
        if not moved:
            raise Conflict(f"Somebody else took {incident.number} first.", code="incident_taken", remedy="Reload it.")
        incident.assignee = to
        news.leave(
            actor, incident, IncidentEvent.Kind.ASSIGNED, verb="incident.assign", at=at or clock.now(),
            old=old.username if old else "", new=new,
        )  # fmt: skip
    return incident


def add_note(*, actor: Actor, incident: Incident, text: str, at: datetime | None = None) -> IncidentEvent:
    """Write what was found or decided. Secrets in it are taken out; only the facility reads notes."""
    permissions.require(actor, "incident.act", incident, remedy=ASK)
    text = cleaning.clean_text(text)
    if not text:
        raise Invalid("The note is empty.", code="note_empty", extra={"field": "text"})
    if len(text) > MAX_NOTE:
        raise Invalid(f"At most {MAX_NOTE} characters.", code="note_too_long", extra={"field": "text"})
    with transaction.atomic():
        news.leave(actor, incident, IncidentEvent.Kind.NOTE, verb="incident.note", at=at or clock.now(), text=text)
    return incident.events.filter(kind=IncidentEvent.Kind.NOTE).latest("pk")

"""Containing the agent an incident is about, and letting it work again."""

from django.db import transaction

from portal.core import clock
from portal.core.errors import Conflict
from principals import permissions
from principals.actors import Actor
from security.models import Incident
from security.services import holding
from security.services.incidents import ASK, advance_to_contained, checked_reason


def contain_agent(*, actor: Actor, incident: Incident, reason: str) -> Incident:
    """Hold the incident's agent (its tokens answer 403 at once) and move the incident to contained.

    Errors: `Conflict` where no registered agent is concerned or the incident is closed; `Invalid` without a reason.
    """
    permissions.require(actor, "incident.act", incident, remedy=ASK)
    reason = checked_reason(reason)
    if incident.agent is None:
        raise Conflict(
            f"No registered agent is tied to {incident.number}.", code="no_agent",
            remedy="Contain it by other means, then mark it as contained.",
        )  # fmt: skip
    with transaction.atomic():
        advance_to_contained(actor, incident, reason, clock.now())
        holding.place(actor, incident, incident.agent, reason=reason)
    return incident


def release_agent(*, actor: Actor, incident: Incident, reason: str) -> Incident:
    """Lift the hold this incident keeps; an agent that another incident also holds stays held.

    Errors: `Conflict` where this incident holds nobody; `Invalid` without a reason.
    """
    permissions.require(actor, "incident.act", incident, remedy=ASK)
    reason = checked_reason(reason)
    with transaction.atomic():
        if not holding.release(actor, incident, reason=reason):
            raise Conflict(f"{incident.number} holds no agent.", code="nothing_held")
    return incident

"""Before a registration ends: saying so, and renewing a lab's agents for another semester."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from portal.core import audit, clock
from portal.core.errors import Invalid
from principals import permissions, selectors
from principals.actors import Actor
from principals.models import Agent, Lab, RenewalReminder
from principals.services.agents import expiry_problem, renew_agent, retire_agent
from principals.services.notices.telling import tell_of_ending_registration

ROLLED_OVER: Final = "not wanted for the next semester"


@dataclass(frozen=True, slots=True)
class RolledOver:
    """How many agents of a lab were renewed, retired, and left as they were."""

    renewed: int
    retired: int
    left: int


def remind_of_renewals() -> int:
    """Tell of the registrations that end soon, each step (30, 7, 1 days) of each end once; return how many."""
    told = 0
    for due in selectors.reminders_due(clock.now()):
        try:
            with transaction.atomic():
                RenewalReminder.objects.create(agent=due.agent, expires=due.agent.expires, days=due.days)
                tell_of_ending_registration(agent=due.agent, days=due.days)
        except IntegrityError:  # another process told it
            continue
        told += 1
    return told


def roll_over_lab(
    *, actor: Actor, lab: Lab, expires: datetime, renew: Collection[int], retire: Collection[int]
) -> RolledOver:
    """Renew some of a lab's agents until one day and retire others; what is named in neither stays as it is.

    `renew` and `retire` are ids. Errors: `NotAllowed`; `Invalid` for an end out of range or an agent in both.
    """
    permissions.require(actor, "lab.manage", lab, remedy="Ask the lab’s PI or a manager.")
    if problem := expiry_problem(expires):
        raise Invalid(problem, code="expiry_out_of_range", extra={"field": "expires"})
    if both := set(renew) & set(retire):
        raise Invalid("An agent is renewed or retired, not both.", code="roll_over_twice", extra={"ids": sorted(both)})
    with transaction.atomic():
        agents = list(lab.agents.exclude(status=Agent.Status.RETIRED).order_by("name"))
        renewed = [agent for agent in agents if agent.pk in renew]
        retired = [agent for agent in agents if agent.pk in retire]
        for agent in renewed:
            renew_agent(actor=actor, agent=agent, expires=expires)
        for agent in retired:
            retire_agent(actor=actor, agent=agent, reason=ROLLED_OVER)
        done = RolledOver(len(renewed), len(retired), len(agents) - len(renewed) - len(retired))
        audit.record(
            actor=actor.ref, verb="lab.roll_over", object_kind="lab", object_id=lab.pk, object_label=lab.name,
            lab_id=lab.pk, after={"renewed": [each.name for each in renewed], "expires": expires,
                                  "retired": [each.name for each in retired]},
        )  # fmt: skip
    return done

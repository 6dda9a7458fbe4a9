"""Agents by the API: one asks that another of its owner's be registered; people decide.

The portal has it, for what an agent writes is cleaned of secrets before it is kept.
"""

from django.conf import settings
from django.http import HttpRequest
from ninja import Router

from portal.core.errors import Invalid, NotAllowed
from portal.core.idempotency import idempotent
from portal.core.problems import answers
from principals import selectors
from principals import services as principal_services
from principals.auth import actor_of, requires
from principals.engine.hours import DAYS, Hours, read_hours
from principals.models import Agent
from principals.schemas import HoursIn, RegisteredOut, RegistrationIn, TierOut
from principals.services.agents import Registration
from security.services.cleaning import clean_text

router = Router()


@router.post(
    "/agents", auth=requires("agents:request"), response=answers(201, RegisteredOut), summary="Ask for another agent"
)
@idempotent
def request_agent(request: HttpRequest, body: RegistrationIn) -> tuple[int, RegisteredOut]:
    """Ask that another agent be registered for the owner of this one, in its lab.

    The answer has its risk tier with the reasons, and whose approval it waits for: always its lab's, for no agent lets
    another one in. Its owner accepts the AUP for it and makes its first token on its page.
    """
    actor = actor_of(request)
    if actor.agent is None or actor.user is None:
        raise NotAllowed("This token is not an agent's.", code="not_an_agent", remedy="Use an agent's token.")
    agent = principal_services.register_agent(
        actor=actor, lab=actor.agent.lab, owner=actor.user, registration=_registration(body)
    )
    return 201, _said(agent)


def _registration(body: RegistrationIn) -> Registration:
    said = body.model_dump(exclude={"hours", "purpose", "harness_version"})
    return Registration(
        **said, purpose=clean_text(body.purpose), harness_version=clean_text(body.harness_version),
        hours=_hours(body.hours) if body.hours else None,
    )  # fmt: skip


def _hours(said: HoursIn) -> Hours | None:
    days = [DAYS.index(day) for day in said.days]
    try:
        return read_hours({"days": days, "start": said.start, "end": said.end, "zone": settings.FACILITY_TIME_ZONE})
    except ValueError as error:
        raise Invalid(str(error), code="hours_malformed", extra={"field": "hours"}) from error


def _said(agent: Agent) -> RegisteredOut:
    risk = selectors.risk_of(agent)
    page = f"{settings.BASE_URL}{agent.get_absolute_url()}"
    return RegisteredOut(
        agent=agent.name,
        status=agent.status,
        acts_for=agent.owner.username,
        lab=agent.lab.name,
        tier=TierOut(name=risk.tier.value, score=risk.score, reasons=[reason.text for reason in risk.reasons]),
        approvals_missing=sorted(selectors.approvals_missing(agent)),
        page=page,
        remedy=f"Tell {agent.owner.username} to accept the AUP for it on {page}; there they see who still approves.",
    )

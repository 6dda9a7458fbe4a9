"""`GET /api/v1/me`: who the agent is, for whom it acts, what it may do and what it still lacks.

The portal puts it together, for it takes several apps.
"""

from datetime import timedelta

from django.http import HttpRequest
from ninja import Router

from policies import selectors as policy_selectors
from policies.schemas import BudgetOut
from portal.core import clock
from portal.core.errors import NotAllowed
from portal.core.problems import answers
from principals import selectors as principal_selectors
from principals.actors import Actor
from principals.auth import REQUESTS_PER_MINUTE, actor_of, requires
from principals.engine import checking_in, scopes, tokens
from principals.engine.hours import DAYS
from principals.models import Agent, AgentToken, SlurmAccount
from principals.schemas import HoursOut, Limits, Me, Missing, TierOut, TokenOut
from telemetry.services import is_harness_telemetry_allowed

router = Router()
SOON = timedelta(days=30)


class LimitsOfAgent(Limits):
    """What this agent is held to, its trial budget included."""

    trials: BudgetOut


class MeOut(Me):
    """Who the agent is, for whom it acts, what it may do and what it still lacks."""

    limits: LimitsOfAgent


@router.get("/me", auth=requires("me:read"), response=answers(200, MeOut), summary="Who am I and what may I do")
def me(request: HttpRequest) -> MeOut:
    """Say who the token stands for, its scopes and limits, and what it still lacks, each with its remedy."""
    return describe(actor_of(request))


def describe(actor: Actor) -> MeOut:
    """Return what an agent's own actor may know of itself."""
    agent = actor.agent
    if agent is None:
        raise NotAllowed("This token is not an agent's.", code="not_an_agent", remedy="Use an agent's token.")
    token = AgentToken.objects.get(key=actor.token_key)
    risk = principal_selectors.risk_of(agent)
    accounts = SlurmAccount.objects.filter(lab_id=agent.lab_id).values_list("name", flat=True)
    return MeOut(
        agent=agent.name,
        harness=agent.harness,
        harness_version=agent.harness_version,
        autonomy=agent.autonomy,
        status=agent.status,
        purpose=agent.purpose,
        acts_for=agent.owner.username,
        lab=agent.lab.name,
        accounts=sorted(set(accounts)),
        tier=TierOut(name=risk.tier.value, score=risk.score, reasons=[reason.text for reason in risk.reasons]),
        token=TokenOut(key=token.key, scopes=sorted(token.scopes), expires=token.expires),
        limits=LimitsOfAgent(
            requests_per_minute=REQUESTS_PER_MINUTE,
            hosts=agent.hosts,
            partitions=agent.partitions,
            accounts=agent.accounts,
            hours=hours_out(agent),
            registration_ends=agent.expires,
            trials=BudgetOut.of(policy_selectors.trial_budget(agent.owner, agent.lab)),
        ),
        missing=_missing(agent, token),
    )


def hours_out(agent: Agent) -> HoursOut | None:
    """Return the hours an agent declared, as the API says them."""
    if (hours := agent.working_hours) is None:
        return None
    days = [DAYS[day] for day in hours.days]
    return HoursOut.model_validate(hours.as_json() | {"days": days})


def _missing(agent: Agent, token: AgentToken) -> list[Missing]:
    lacking = [
        Missing(code="scope_missing", what=f"No scope {name}.", remedy="Ask its owner for a token that has it.")
        for name in sorted(scopes.default_scopes(tokens.TokenKind.AGENT) - set(token.scopes))
        if name != scopes.TELEMETRY or is_harness_telemetry_allowed(agent.owner)  # of no use where nobody agreed
    ]
    if principal_selectors.current_session(agent) is None:
        lacking.append(
            Missing(
                code="not_checked_in",
                what="Not checked in: no session of this agent is open.",
                remedy=checking_in.REMEDY,
            )
        )
    soon = clock.now() + SOON
    if agent.expires < soon:
        lacking.append(
            Missing(
                code="registration_ends_soon",
                what=f"Its registration ends on {agent.expires:%Y-%m-%d}.",
                remedy="Its PI can renew it on My lab.",
            )
        )
    return lacking

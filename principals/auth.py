"""The token check at the API's door: one query reads token, agent, owner and every hold in force."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import OperationalError
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from ninja.security import HttpBearer

from portal.core import clock, disk, throttle
from portal.core.errors import NotAllowed, Unauthenticated
from principals import permissions, selectors
from principals.actors import Actor
from principals.engine import networks, tokens
from principals.models import Agent, AgentToken, Hold, LabMembership, ServiceToken
from principals.prepared import Prepared
from principals.services.tokens.issuing import peppers

REQUESTS_PER_MINUTE = 600
FAILURES_PER_MINUTE = 60
LAST_USED_EVERY = timedelta(minutes=1)
_ASK_FOR_ANOTHER = "Ask the person who answers for the agent for a new token."
_REMEDIES: dict[str, str] = {
    AgentToken.How.MUNGE: "Run gatehouse login again.",
    AgentToken.How.DEVICE: "Run gatehouse login again.",
    AgentToken.How.SUB_AGENT: "The agent that started this one starts another.",
}


def client_address(request: HttpRequest) -> str:
    """Return the caller's address: the peer, or X-Forwarded-For counted from the right, one for each proxy."""
    proxies: int = settings.PROXY_COUNT
    if proxies > 0:
        hops = [hop.strip() for hop in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if hop.strip()]
        if len(hops) >= proxies and networks.only(hops[-proxies]):  # no address: nothing could be bound to it
            return str(hops[-proxies])
    return str(request.META.get("REMOTE_ADDR", ""))


class requires(HttpBearer):
    """Bearer authentication that also asks for a scope; `request.auth` becomes the `Actor`."""

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Any:
        try:
            actor = super().__call__(request)
        except Unauthenticated:
            throttle.check("token-failures", networks.caller_of(client_address(request)), limit=FAILURES_PER_MINUTE)
            raise
        if actor is None:
            raise Unauthenticated("No bearer token was sent.", remedy="Send `Authorization: Bearer <token>`.")
        throttle.check("token", counted_under(actor), limit=REQUESTS_PER_MINUTE)
        if self.scope not in actor.scopes:
            raise NotAllowed(
                f"This token has no scope {self.scope}.",
                code="scope_missing",
                remedy=f"Ask for a token with the scope {self.scope}.",
                extra={"scope": self.scope},
            )
        return actor

    def authenticate(self, request: HttpRequest, token: str) -> Actor:
        return actor_for_token(token, address=client_address(request))


def counted_under(actor: Actor) -> str:
    """Return what requests are counted under: sub-agents, who are made at will, share what one token may."""
    is_sub = actor.token is not None and actor.token.how == AgentToken.How.SUB_AGENT
    return f"sub-agents-{actor.ref.id}" if is_sub else actor.token_key


def actor_for_token(text: str, *, address: str) -> Actor:
    """Return the actor a token stands for.

    Errors: `Unauthenticated` for a token that is malformed, unknown, revoked or expired; `NotAllowed` with the hold's
    code and remedy where its principal is held, inactive, or comes from elsewhere.
    """
    parsed = tokens.parse_token(text)
    if parsed is None:
        raise Unauthenticated("The token is not of our form.", code="token_malformed", remedy=_ASK_FOR_ANOTHER)
    is_agent = parsed.kind is tokens.TokenKind.AGENT
    row: AgentToken | ServiceToken | None = (_AGENT_TOKENS if is_agent else _SERVICE_TOKENS).first(parsed.key)
    if row is None or not tokens.verify_token(parsed, tokens.TokenDigest(row.pepper, row.digest), peppers()):
        raise Unauthenticated("The token is unknown.", code="token_unknown", remedy=_ASK_FOR_ANOTHER)
    if row.state != "active":
        remedy = _REMEDIES.get(row.how, _ASK_FOR_ANOTHER) if isinstance(row, AgentToken) else _ASK_FOR_ANOTHER
        raise Unauthenticated(f"The token is {row.state}.", code=f"token_{row.state}", remedy=remedy)
    if row.networks and not networks.is_allowed(address, networks.parse_networks(row.networks)):
        raise NotAllowed(
            "The token may not be used from this address.", code="address_not_allowed",
            remedy="Use it on the hosts it was made for.",
        )  # fmt: skip
    if isinstance(row, AgentToken):
        _require_working(row)
        actor = permissions.actor_for_agent(row)
    else:
        _require_service_working(row)
        actor = permissions.actor_for_service(row)
    _note_use(row)
    return actor


def _agent_token(key: str) -> QuerySet[AgentToken]:
    belongs = Exists(LabMembership.objects.filter(lab=OuterRef("agent__lab_id"), user=OuterRef("agent__owner_id")))
    found = AgentToken.objects.filter(key=key).annotate(is_held=selectors.is_held("agent__"), owner_belongs=belongs)
    return found.select_related("agent__owner", "agent__lab")


def _service_token(key: str) -> QuerySet[ServiceToken]:
    held = Exists(Hold.objects.in_force().filter(subject_kind="service", subject_id=OuterRef("service_id")))
    return ServiceToken.objects.filter(key=key).annotate(is_held=held).select_related("service__cluster")


_AGENT_TOKENS, _SERVICE_TOKENS = Prepared(_agent_token), Prepared(_service_token)


def _require_working(token: AgentToken) -> None:
    agent = token.agent
    if token.is_held:  # type: ignore[attr-defined]
        hold = selectors.holds_on_agent(agent).order_by("placed_at").first()
        if hold is not None:
            raise NotAllowed(hold.reason, code=hold.code, remedy=hold.remedy, extra={"hold": hold.kind})
    if agent.status != Agent.Status.ACTIVE:
        raise NotAllowed(
            f"Agent {agent.name} is {agent.get_status_display().lower()}.", code=f"agent_{agent.status}",
            remedy="Its PI or lab manager can change that on My lab.",
        )  # fmt: skip
    if agent.is_expired:
        raise NotAllowed(
            f"The registration of {agent.name} ended.",
            code="agent_expired",
            remedy="Its PI can renew it on My lab.",
        )
    if not agent.owner.is_active:
        raise NotAllowed("The person who answers for this agent has left.", code="owner_inactive")
    if not token.owner_belongs:  # type: ignore[attr-defined]
        raise NotAllowed(
            f"The person who answers for {agent.name} no longer belongs to its lab.", code="owner_outside_lab",
            remedy="Its PI retires it, or gives that person a place in the lab again.",
        )  # fmt: skip


def _require_service_working(token: ServiceToken) -> None:
    service = token.service
    if not service.is_active:
        raise NotAllowed(f"The account {service.name} is switched off.", code="service_inactive")
    if token.is_held:  # type: ignore[attr-defined]
        hold = Hold.objects.in_force().on("service", service.pk).order_by("placed_at").first()
        if hold is not None:
            raise NotAllowed(hold.reason, code=hold.code, remedy=hold.remedy, extra={"hold": hold.kind})


def _note_use(token: AgentToken | ServiceToken) -> None:
    now = clock.now()
    if token.last_used is not None and now - token.last_used < LAST_USED_EVERY:
        return
    try:
        type(token).objects.filter(pk=token.pk).update(last_used=now)
        if isinstance(token, AgentToken):
            Agent.objects.filter(pk=token.agent_id).update(last_seen=now)
    except OperationalError as error:
        if not disk.is_full(error):  # whoever only reads can, without a note of it
            raise


ActorRequest = Callable[[HttpRequest], Actor]


def actor_of(request: HttpRequest) -> Actor:
    """Return the actor of an API request that `requires` let in."""
    actor: Actor = request.auth  # type: ignore[attr-defined]
    return actor

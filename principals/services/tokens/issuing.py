"""Issuing and revoking tokens. The plain token exists only in what `issue_*` returns."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from portal.core import audit, clock, live
from portal.core.errors import Conflict, Invalid, NotAllowed
from principals import events, permissions, selectors
from principals.actors import Actor
from principals.engine import networks, scopes, tiers, tokens
from principals.models import Agent, AgentToken, Cluster, ServiceAccount, ServiceToken, User

LONGEST_SERVICE_LIFE = timedelta(days=366)
_INACTIVE: dict[str, str] = {
    Agent.Status.REQUESTED: "It needs every approval first.",
    Agent.Status.SUSPENDED: "Whoever suspended it, its PI or staff can resume it on its page.",
    Agent.Status.RETIRED: "A retired agent never returns; register a new one.",
}


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token just made. `plain` is shown once and kept nowhere."""

    row: AgentToken | ServiceToken
    plain: str = field(repr=False)


def peppers() -> dict[int, bytes]:
    """Return the configured peppers by number."""
    return {number: pepper.encode() for number, pepper in settings.TOKEN_PEPPERS.items()}


def longest_life_days(agent: Agent) -> int:
    """Return how many days a token of an agent may live, by its risk tier and what the site set."""
    return tiers.max_token_life_days(selectors.risk_of(agent).tier, settings.TOKEN_LIFE_DAYS)


def latest_end(agent: Agent) -> datetime:
    """Return when a token that is made now has to end: by the tier's limit, and with the agent itself."""
    end: datetime = min(clock.now() + timedelta(days=longest_life_days(agent)), agent.expires)
    return end


def issue_agent_token(
    *,
    actor: Actor,
    agent: Agent,
    label: str = "",
    scope_names: Iterable[str] | None = None,
    network_ranges: Iterable[str] = (),
    expires: datetime | None = None,
) -> IssuedToken:
    """Issue a token for an active, unheld agent; its life ends with the tier's limit and with the agent's own.

    Errors: `Conflict` while the agent may not work, `Invalid` for unknown scopes, networks or a life too long.
    """
    permissions.require(actor, "agent.issue_token", agent)
    require_working(agent)
    wanted = checked_scopes(scope_names, tokens.TokenKind.AGENT)
    end = _checked_end(expires, latest_end(agent))
    ranges = _checked_networks(network_ranges)
    with transaction.atomic():
        return make_agent_token(
            actor, AgentToken(agent=agent, label=label[:80], scopes=wanted, networks=ranges, expires=end), "token.issue"
        )


def make_agent_token(actor: Actor, row: AgentToken, verb: str, **said: object) -> IssuedToken:
    """Give a row that was thought through its key and digest, store and record it, in the caller's transaction.

    Errors: `Conflict` where its agent was handed over or retired meanwhile: the tokens that ended then were all of it.
    """
    hold_agent(row.agent)
    parts = tokens.make_token(tokens.TokenKind.AGENT)
    stored = tokens.digest_token(parts, peppers())
    row.key, row.digest, row.pepper, row.created_by = parts.key, stored.digest, stored.pepper_id, actor.user
    row.save(force_insert=True)
    agent = row.agent
    audit.record(
        actor=actor.ref, verb=verb, object_kind="agent", object_id=agent.pk, object_label=agent.name,
        lab_id=agent.lab_id, after={"key": parts.key, "scopes": row.scopes, "expires": row.expires, **said},
    )  # fmt: skip
    return IssuedToken(row=row, plain=parts.plain)


def hold_agent(agent: Agent) -> None:
    """Let no one hand the agent over or retire it until this transaction ends. Errors: `Conflict` where somebody did.

    Whoever locks a token too calls this first, as those do.
    """
    now = Agent.objects.select_for_update(no_key=True).only("owner_id", "status").get(pk=agent.pk)
    if now.owner_id != agent.owner_id or now.status == Agent.Status.RETIRED:
        raise Conflict(
            f"{agent.name} was handed over or retired meanwhile.", code="agent_changed",
            remedy="Its owner makes a new token on its page.",
        )  # fmt: skip


def require_working(agent: Agent) -> None:
    """Refuse a token to an agent that may not work. Errors: `Conflict`."""
    hold = selectors.holds_on_agent(agent).order_by("placed_at").first()
    if agent.status == Agent.Status.REQUESTED or (hold is None and agent.status != Agent.Status.ACTIVE):
        raise Conflict(f"{agent.name} is not active.", code="agent_not_active", remedy=_INACTIVE[agent.status])
    if agent.is_expired:
        raise Conflict(
            f"The registration of {agent.name} ended.", code="agent_expired", remedy="Its PI can renew it on My lab."
        )
    if hold is not None:
        raise Conflict(hold.reason, code=hold.code, remedy=hold.remedy)


def checked_scopes(names: Iterable[str] | None, kind: tokens.TokenKind) -> list[str]:
    """Return the scopes named, or the default ones, sorted. Errors: `Invalid` for one that there is not, or none."""
    wanted = set(scopes.default_scopes(kind) if names is None else names)
    if refused := scopes.refused_scopes(wanted, kind):
        raise Invalid(
            f"No such scope for this kind of token: {', '.join(refused)}.", code="scope_unknown",
            remedy="Scopes are listed in docs/harnesses.md.", extra={"field": "scopes"},
        )  # fmt: skip
    if not wanted:
        raise Invalid("A token needs at least one scope.", code="scope_missing", extra={"field": "scopes"})
    return sorted(wanted)


def _checked_networks(ranges: Iterable[str]) -> list[str]:
    try:
        return [str(network) for network in networks.parse_networks(ranges)]
    except ValueError as error:
        raise Invalid(str(error), code="network_malformed", extra={"field": "networks"}) from error


def _checked_end(expires: datetime | None, latest: datetime) -> datetime:
    if expires is None:
        return latest
    if not clock.now() < expires <= latest:
        raise Invalid(
            f"A token of this agent ends by {latest:%Y-%m-%d} at the latest.", code="expiry_out_of_range",
            extra={"field": "expires"},
        )  # fmt: skip
    return expires


def revoke_agent_token(*, actor: Actor, token: AgentToken, reason: str = "", with_rotation: bool = False) -> list[str]:
    """Revoke a token; requests with it fail at once and its sockets close within seconds. Return the keys that ended.

    `with_rotation`: also those it was rolled over from, and those it was rolled over to.
    """
    permissions.require(actor, "agent.revoke_token", token.agent)
    return end_agent_token(actor, token, reason, with_rotation=with_rotation)


def end_own_token(*, actor: Actor, reason: str = "its holder gave it back") -> None:
    """End the token that an agent speaks with."""
    own = AgentToken.objects.filter(key=actor.token_key, agent=actor.agent).select_related("agent").first()
    if own is None:
        raise NotAllowed("Only an agent's token ends itself.", code="not_an_agent")
    end_agent_token(actor, own, reason)


def end_agent_token(actor: Actor, token: AgentToken, reason: str, *, with_rotation: bool = False) -> list[str]:
    """Revoke a token for whoever may, and record it."""
    agent = token.agent
    with transaction.atomic():
        _revoke(actor, token)
        keys = [token.key]
        for row in selectors.rotation_of(token) if with_rotation else ():
            if AgentToken.objects.filter(pk=row.pk, revoked_at=None).update(
                revoked_at=clock.now(), revoked_by=actor.ref.label
            ):
                keys.append(row.key)
        keys += _end_children(actor, keys)
        note_revoked(actor, agent, keys, reason)
    return keys


def note_revoked(actor: Actor, agent: Agent, keys: Iterable[str], reason: str) -> None:
    """Record tokens of an agent that were revoked, and announce them, in the caller's transaction."""
    topics = (f"agent:{agent.pk}", "facility:principals")
    for key in keys:
        audit.record(
            actor=actor.ref, verb="token.revoke", object_kind="agent", object_id=agent.pk, object_label=agent.name,
            lab_id=agent.lab_id, after={"key": key}, reason=reason,
        )  # fmt: skip
        live.announce([live.News(name=events.TOKEN_REVOKED, topics=topics, payload={"key": key})])


def _end_children(actor: Actor, keys: list[str]) -> list[str]:
    """Revoke the sub-agents of tokens that end, and theirs; return the keys that ended."""
    ended = list[str]()
    while keys:
        works = AgentToken.objects.filter(parent__key__in=keys, revoked_at=None)
        keys = list(works.values_list("key", flat=True))
        works.update(revoked_at=clock.now(), revoked_by=actor.ref.label)
        ended += keys
    return ended


def _revoke(actor: Actor, token: AgentToken | ServiceToken) -> None:
    rows = AgentToken.objects if isinstance(token, AgentToken) else ServiceToken.objects
    if not rows.filter(pk=token.pk, revoked_at=None).update(revoked_at=clock.now(), revoked_by=actor.ref.label):
        raise Conflict("This token is revoked already.", code="token_revoked")


def create_service_account(
    *, actor: Actor, name: str, purpose: str = "", cluster: Cluster | None = None
) -> ServiceAccount:
    """Make an account for a piece of site automation, bound to one cluster where given."""
    permissions.require(actor, "service.manage")
    with transaction.atomic():
        service = ServiceAccount.objects.create(name=name, purpose=purpose, cluster=cluster)
        audit.record(
            actor=actor.ref, verb="service.create", object_kind="service", object_id=service.pk, object_label=name,
            after={"purpose": purpose, "cluster": cluster.name if cluster else None},
        )  # fmt: skip
    return service


def issue_service_token(
    *, actor: Actor, service: ServiceAccount, scope_names: Iterable[str], days: int = 365, label: str = "",
    network_ranges: Iterable[str] = (),
) -> IssuedToken:  # fmt: skip
    """Issue a token for site automation, for a year at most."""
    permissions.require(actor, "service.manage")
    wanted = checked_scopes(scope_names, tokens.TokenKind.SERVICE)
    now = clock.now()
    end = _checked_end(now + timedelta(days=days), now + LONGEST_SERVICE_LIFE)
    parts = tokens.make_token(tokens.TokenKind.SERVICE)
    stored = tokens.digest_token(parts, peppers())
    created_by: User | None = actor.user
    with transaction.atomic():
        row = ServiceToken.objects.create(
            service=service, label=label[:80], key=parts.key, digest=stored.digest, pepper=stored.pepper_id,
            scopes=wanted, networks=_checked_networks(network_ranges), expires=end, created_by=created_by,
        )  # fmt: skip
        audit.record(
            actor=actor.ref, verb="token.issue", object_kind="service", object_id=service.pk,
            object_label=service.name, after={"key": parts.key, "scopes": wanted, "expires": end},
        )  # fmt: skip
    return IssuedToken(row=row, plain=parts.plain)


def revoke_service_token(*, actor: Actor, token: ServiceToken, reason: str = "") -> None:
    """Revoke a token of site automation."""
    permissions.require(actor, "service.manage")
    with transaction.atomic():
        _revoke(actor, token)
        audit.record(
            actor=actor.ref, verb="token.revoke", object_kind="service", object_id=token.service_id,
            object_label=token.service.name, after={"key": token.key}, reason=reason,
        )  # fmt: skip

"""Tokens of a login: whoever proves who they are gets one for an agent of theirs, for twelve hours."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Coalesce

from portal.core import clock
from portal.core.errors import Conflict, NotAllowed
from principals import permissions
from principals.actors import Actor
from principals.engine import networks, tokens
from principals.models import Agent, AgentToken, LabMembership, User
from principals.services.tokens.issuing import (
    IssuedToken,
    checked_scopes,
    end_agent_token,
    hold_agent,
    latest_end,
    make_agent_token,
    require_working,
)

LOGIN_LIFE: Final = timedelta(hours=12)
IDLE: Final = timedelta(hours=1)  # whoever did not use a login for so long misses it least
# What a login may not be given: it would outlive the login.
NOT_AT_LOGIN: Final = frozenset({"token:rotate"})


def agent_of(person: User, name: str) -> Agent:
    """Return the agent of a person that is named, or the only one. Errors: `NotAllowed`, `Conflict`."""
    if not person.is_active:
        raise NotAllowed(
            "The account of this person is switched off.", code="person_inactive", remedy="Ask the facility’s staff."
        )
    own = Agent.objects.filter(owner=person).exclude(status=Agent.Status.RETIRED).select_related("lab", "owner")
    found = list(own.filter(name=name) if name else own.order_by("name"))
    if len(found) > 1:
        raise Conflict(
            f"Several agents are yours: {', '.join(agent.name for agent in found)}.", code="agent_ambiguous",
            remedy="Name one: gatehouse login --agent NAME.",
        )  # fmt: skip
    if not found:
        told = f"You answer for no agent that is called {name}." if name else "You answer for no agent."
        raise NotAllowed(told, code="agent_unknown", remedy="Register it on My lab, or name one of yours.")
    return found[0]


def issue_login_token(
    *, person: User, agent: Agent, how: str, host: str, scope_names: Iterable[str] | None, address: str = ""
) -> IssuedToken:
    """Issue a token to the owner of an agent who proved who they are; `address`: the only one it then works from.

    Errors: `NotAllowed` for whoever is not its owner, or left its lab; `Conflict` while it may not work, and where it
    has as many logins as the site lets it and uses them all: else the one that was used longest ago ends.
    """
    if agent.owner_id != person.pk or not person.is_active:
        raise NotAllowed("Only who answers for an agent logs it in.", code="not_owner")
    if not LabMembership.objects.filter(lab=agent.lab_id, user=person).exists():
        raise NotAllowed(
            f"You no longer belong to the lab of {agent.name}.", code="owner_outside_lab",
            remedy="Its PI retires it, or gives you a place in the lab again.",
        )  # fmt: skip
    actor = permissions.actor_for_user(person)
    permissions.require(actor, "agent.issue_token", agent)
    require_working(agent)
    asked = checked_scopes(scope_names, tokens.TokenKind.AGENT)
    wanted = checked_scopes(set(asked) - NOT_AT_LOGIN, tokens.TokenKind.AGENT)
    row = AgentToken(
        agent=agent, label=f"login on {host}"[:80], scopes=wanted, networks=list(networks.only(address)), how=how,
        host=host[:100], expires=min(clock.now() + LOGIN_LIFE, latest_end(agent)),
    )  # fmt: skip
    with transaction.atomic():
        hold_agent(agent)  # of two at once the second sees the first
        _make_room(actor, agent)
        return make_agent_token(actor, row, "token.login", how=how, host=host)


def _make_room(actor: Actor, agent: Agent) -> None:
    """End the logins that were used longest ago, as many as it takes for one more. Errors: `Conflict`."""
    now, most = clock.now(), settings.LOGINS_PER_AGENT
    live = agent.tokens.filter(how__in=(AgentToken.How.MUNGE, AgentToken.How.DEVICE), revoked_at=None, expires__gt=now)
    used = Coalesce("last_used", "created")
    rows = list(live.annotate(used=used).select_related("agent").order_by("used", "pk"))
    for row in rows[: max(0, len(rows) + 1 - most)]:
        if row.used > now - IDLE:
            raise Conflict(
                f"{agent.name} is logged in {len(rows)} times, and each was used within the hour.",
                code="too_many_logins",
                remedy="Run gatehouse logout where one is over, or revoke it on the agent’s page; what runs on a node "
                "shares one login.",
            )  # fmt: skip
        end_agent_token(actor, row, "another login took its place")

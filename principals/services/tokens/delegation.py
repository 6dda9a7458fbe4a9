"""Sub-agents: a token that an agent's token starts, with less to do and no longer to live, and that ends with it."""

import re
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from django.db import transaction

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed
from principals.actors import Actor
from principals.models import AgentToken
from principals.services.tokens.issuing import IssuedToken, hold_agent, make_agent_token, require_working

DEEPEST: Final = 3  # sub-agents below one another
MOST: Final = 20  # that work at once, of one token
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")


def start_sub_agent(*, actor: Actor, name: str, scope_names: Collection[str], life_s: int) -> IssuedToken:
    """Start a sub-agent: a token with some of the scopes of the one that asks, and no later end.

    Errors: `Invalid` for scopes that it lacks itself or a name that is none, `Conflict` where there are too many.
    """
    if actor.agent is None or "token:delegate" not in actor.scopes:
        raise NotAllowed("Only an agent's token starts sub-agents.", code="not_an_agent")
    require_working(actor.agent)
    if not _NAME.fullmatch(name):
        raise Invalid(
            "A sub-agent is named in lower-case letters, digits and dashes, 24 at most.", code="name_malformed",
            extra={"field": "name"},
        )  # fmt: skip
    if beyond := sorted(set(scope_names) - actor.scopes):
        raise Invalid(
            f"This token has no scope {', '.join(each[:40] for each in beyond[:5])} to hand on.", code="scope_beyond",
            remedy="Name some of those that GET /me tells.", extra={"field": "scopes"},
        )  # fmt: skip
    if not scope_names:
        raise Invalid("A token needs at least one scope.", code="scope_missing", extra={"field": "scopes"})
    with transaction.atomic():
        hold_agent(actor.agent)
        # The row is the lock: a sub-agent that is started while its parent ends, ends too.
        parent = AgentToken.objects.select_for_update(no_key=True).select_related("agent").get(key=actor.token_key)
        _require_room(parent)
        row = AgentToken(
            agent=parent.agent, label=name, scopes=sorted(set(scope_names)), networks=parent.networks, parent=parent,
            how=AgentToken.How.SUB_AGENT, host=parent.host,
            chain=[*parent.chain, name], expires=min(clock.now() + timedelta(seconds=life_s), parent.expires),
        )  # fmt: skip
        return make_agent_token(actor, row, "token.delegate", sub_agent=name, parent=parent.key)


def _require_room(parent: AgentToken) -> None:
    if parent.state != "active":
        raise Conflict(f"The token is {parent.state}.", code=f"token_{parent.state}")
    if len(parent.chain) >= DEEPEST:
        raise Conflict(
            f"Sub-agents are {DEEPEST} deep at most.", code="too_deep", remedy="Let the agent above start it."
        )
    if parent.children.filter(revoked_at=None, expires__gt=clock.now()).count() >= MOST:
        raise Conflict(
            f"{MOST} sub-agents of this token work.", code="too_many_sub_agents",
            remedy="End one by POST /token/revoke with its own token.",
        )  # fmt: skip

"""Rolling a token over: the new one is shown once, and the old one goes on for as long as the site lets both live."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from portal.core import clock
from portal.core.errors import Conflict
from principals import permissions
from principals.actors import Actor
from principals.models import AgentToken
from principals.services.tokens.issuing import (
    IssuedToken,
    hold_agent,
    latest_end,
    make_agent_token,
    note_revoked,
    require_working,
)


def rotate_agent_token(*, actor: Actor, token: AgentToken) -> IssuedToken:
    """Make the token that replaces one: the same scopes and ranges, as long a life; the old one ends after the overlap.

    Where nobody ever used the new one its answer was lost: it is revoked, and another made. So a retry is harmless.
    Errors: `Conflict` for a token that ended or was rolled over, and while its agent may not work.
    """
    permissions.require(actor, "agent.rotate_token", token)
    require_working(token.agent)
    if token.how == AgentToken.How.SUB_AGENT:
        raise Conflict(
            "The token of a sub-agent is not rolled over.", code="token_of_sub_agent",
            remedy="The agent that started it starts another.",
        )  # fmt: skip
    if token.how != AgentToken.How.MADE:
        raise Conflict(
            "A login is not rolled over: it ends after twelve hours.", code="token_of_login",
            remedy="Run gatehouse login again.",
        )  # fmt: skip
    with transaction.atomic():
        hold_agent(token.agent)
        # The row is the lock: of two at once the second sees what the first made.
        old = AgentToken.objects.select_for_update(no_key=True).get(pk=token.pk)
        if old.state != "active":
            raise Conflict(
                f"This token is {old.state}.", code=f"token_{old.state}", remedy="Make a new one on the agent's page."
            )
        lost = old.replaced_by.filter(revoked_at=None).order_by("-created").first()
        if lost is not None:
            _take_back(actor, token, lost)
        whole = lost or old
        row = AgentToken(
            agent=token.agent, label=old.label, scopes=old.scopes, networks=old.networks, replaces=old,
            expires=min(clock.now() + (whole.expires - whole.created), latest_end(token.agent)),
        )  # fmt: skip
        ends = old.expires if lost else _shorten(old)
        return make_agent_token(actor, row, "token.rotate", replaces=old.key, old_ends=ends)


def _shorten(old: AgentToken) -> datetime:
    """Let a token end after the overlap, never later than it would."""
    ends: datetime = min(old.expires, clock.now() + timedelta(hours=settings.TOKEN_OVERLAP_HOURS))
    AgentToken.objects.filter(pk=old.pk).update(expires=ends)
    above = [old.pk]
    while above:  # sub-agents end with it
        below = AgentToken.objects.filter(parent__in=above)
        above = list(below.values_list("pk", flat=True))
        below.filter(expires__gt=ends).update(expires=ends)
    return ends


def _take_back(actor: Actor, token: AgentToken, lost: AgentToken) -> None:
    """Revoke the token that replaced one and never arrived. Errors: `Conflict` where it is in use."""
    gone = AgentToken.objects.filter(pk=lost.pk, revoked_at=None, last_used=None)
    if not gone.update(revoked_at=clock.now(), revoked_by=actor.ref.label):
        raise Conflict(
            f"This token was rolled over to gha_{lost.key} already, which is in use.", code="token_rotated",
            remedy="Use that one; this one ends by itself.",
        )  # fmt: skip
    note_revoked(actor, token.agent, [lost.key], "rolled over again before it was used")

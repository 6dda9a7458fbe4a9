"""The API of `principals`: how an agent's token is got, and what it does about itself."""

import os
from typing import cast

from django.http import HttpRequest
from ninja import Router

from portal.core import throttle
from portal.core.errors import NotAllowed
from portal.core.problems import answers
from principals import services as principal_services
from principals.actors import Actor
from principals.auth import actor_of, client_address, requires
from principals.engine import munge, networks
from principals.models import AgentToken
from principals.schemas import LoggedIn, MungeAsked, MungeIn, TokenEnded, TokenRotated
from principals.services.tokens import IssuedToken

router = Router()
LOGINS_PER_MINUTE = 60  # from one address: a login node has many people


@router.get("/login/munge", response=answers(200, MungeAsked), summary="Begin a login by MUNGE")
def begin_munge_login(request: HttpRequest) -> MungeAsked:
    """Give a number to put into one credential, and the uid that alone should be able to read it. Needs no token."""
    _count_login(request)
    return MungeAsked(nonce=principal_services.make_nonce(), restrict_uid=os.geteuid(), ttl_s=munge.TTL_S)


@router.post("/login/munge", response=answers(200, LoggedIn), summary="Log in by MUNGE")
def finish_munge_login(request: HttpRequest, body: MungeIn) -> LoggedIn:
    """Exchange a credential of the node's munged for a token of twelve hours, told this once. Needs no token.

    Its payload is JSON: `portal` (this portal's address), `nonce`, `host`, `agent`, `cluster`, `scopes`.
    """
    _count_login(request)
    issued = principal_services.login_by_munge(credential=body.credential, address=client_address(request))
    return logged_in(issued)


def logged_in(issued: IssuedToken) -> LoggedIn:
    """Return what a login is answered with."""
    row = cast(AgentToken, issued.row)
    return LoggedIn(
        token=issued.plain, key=row.key, agent=row.agent.name, acts_for=row.agent.owner.username, host=row.host,
        scopes=row.scopes, networks=row.networks, expires=row.expires,
    )  # fmt: skip


def _count_login(request: HttpRequest) -> None:
    throttle.check(
        "login", networks.caller_of(client_address(request)), limit=LOGINS_PER_MINUTE, what="logins from one address",
        remedy="Wait as long as Retry-After says.",
    )  # fmt: skip


@router.post(
    "/token/rotate", auth=requires("token:rotate"), response=answers(200, TokenRotated),
    summary="Roll this token over",
)  # fmt: skip
def rotate_token(request: HttpRequest) -> TokenRotated:
    """Make the token that replaces this one, told this once; this one goes on until `old_ends`.

    Until the new one was used, asking again revokes it and makes another: so an answer that was lost does no harm. No
    answer is kept for an `Idempotency-Key`, for a token is kept nowhere.
    """
    token = _own_token(actor_of(request))
    issued = principal_services.rotate_agent_token(actor=actor_of(request), token=token)
    token.refresh_from_db(fields=["expires"])
    row = issued.row
    return TokenRotated(
        token=issued.plain, key=row.key, scopes=row.scopes, expires=row.expires, old_key=token.key,
        old_ends=token.expires,
    )  # fmt: skip


@router.post("/token/revoke", auth=requires("me:read"), response=answers(200, TokenEnded), summary="End this token")
def revoke_token(request: HttpRequest) -> TokenEnded:
    """Revoke the token that is sent: whoever holds it gives it back, at once."""
    actor = actor_of(request)
    principal_services.end_own_token(actor=actor)
    return TokenEnded(key=actor.token_key)


def _own_token(actor: Actor) -> AgentToken:
    own = AgentToken.objects.filter(key=actor.token_key).select_related("agent").first()
    if own is None:
        raise NotAllowed("This token is not an agent's.", code="not_an_agent", remedy="Use an agent's token.")
    return own

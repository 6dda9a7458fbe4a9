"""The API of `principals`: how an agent's token is got, and what it does about itself."""

import os
from typing import cast

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from ninja import Form, Router

from portal.core import clock, throttle
from portal.core.errors import NotAllowed
from portal.core.problems import answers
from principals import services as principal_services
from principals.actors import Actor
from principals.auth import actor_of, client_address, requires
from principals.engine import device, munge, networks
from principals.models import AgentToken
from principals.schemas import (
    DeviceBegun,
    DeviceToken,
    LoggedIn,
    MungeAsked,
    MungeIn,
    SubAgentIn,
    SubAgentStarted,
    TokenEnded,
    TokenRotated,
)
from principals.services.tokens.devices import oauth_refusal
from principals.services.tokens.issuing import IssuedToken

router = Router()
LOGINS_PER_MINUTE = 60  # from one address: a login node has many people
QUESTIONS_PER_MINUTE = 600  # of devices that wait, from one address


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


@router.post("/login/device", response=answers(200, DeviceBegun), summary="Begin a login of a device")
def begin_device_login(
    request: HttpRequest, client_id: Form[str], host: Form[str] = "unknown", scope: Form[str] = ""
) -> DeviceBegun:
    """Give the codes of a login (RFC 8628, 3.1), as a form is sent. `client_id` is the agent's name. Needs no token."""
    _count_login(request)
    begun = principal_services.begin_device_login(
        agent_name=client_id, host=host, scope_names=scope.split(), address=client_address(request)
    )
    page = f"{settings.BASE_URL}{reverse('device-login')}"
    return DeviceBegun(
        device_code=begun.device_code, user_code=begun.user_code, verification_uri=page,
        verification_uri_complete=f"{page}?user_code={begun.user_code}", expires_in=device.LIFE_S,
        interval=begun.row.interval_s,
    )  # fmt: skip


@router.post("/login/token", response=answers(200, DeviceToken), summary="Ask for the token of a device")
def finish_device_login(
    request: HttpRequest, grant_type: Form[str], device_code: Form[str], client_id: Form[str]
) -> DeviceToken:
    """Give the token once its person approved (RFC 8628, 3.4), as a form is sent. Needs no token.

    Until then 400 with an `error`: `authorization_pending`, `slow_down`, `access_denied`, `expired_token`,
    `invalid_grant`.
    """
    throttle.check("login-token", networks.caller_of(client_address(request)), limit=QUESTIONS_PER_MINUTE)
    if grant_type != device.GRANT_TYPE:
        raise oauth_refusal(
            "unsupported_grant_type", "That is no grant this portal knows.", f"Send {device.GRANT_TYPE}."
        )
    issued = principal_services.finish_device_login(device_code=device_code, agent_name=client_id)
    said = logged_in(issued)
    return DeviceToken(
        access_token=said.token, token_type="Bearer", scope=" ".join(said.scopes), agent=said.agent,  # noqa: S106
        expires_in=int((said.expires - clock.now()).total_seconds()), acts_for=said.acts_for, host=said.host,
        expires=said.expires,
    )  # fmt: skip


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


@router.post(
    "/token/delegate", auth=requires("token:delegate"), response=answers(200, SubAgentStarted),
    summary="Start a sub-agent",
)  # fmt: skip
def start_sub_agent(request: HttpRequest, body: SubAgentIn) -> SubAgentStarted:
    """Make the token of a sub-agent, told this once: with some of this one's scopes, and no later end.

    It ends at once where this one is revoked. Its name stands in the audit behind the agent's.
    """
    issued = principal_services.start_sub_agent(
        actor=actor_of(request), name=body.name, scope_names=body.scopes, life_s=body.life_s
    )
    row = cast(AgentToken, issued.row)
    return SubAgentStarted(
        token=issued.plain, key=row.key, chain=[row.agent.name, *row.chain], scopes=row.scopes, expires=row.expires
    )


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

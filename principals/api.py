"""The API of `principals`: what an agent's token does about itself."""

from django.http import HttpRequest
from ninja import Router

from portal.core.errors import NotAllowed
from portal.core.problems import answers
from principals import services as principal_services
from principals.actors import Actor
from principals.auth import actor_of, requires
from principals.models import AgentToken
from principals.schemas import TokenEnded, TokenRotated

router = Router()


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

"""Who may do what in `policies`."""

from collections.abc import Callable
from typing import Any

from portal.core.errors import NotAllowed
from principals import permissions as principal_permissions
from principals.actors import Actor


def _staff(actor: Actor, _: Any) -> bool:
    return principal_permissions.can(actor, "facility.run")


RULES: dict[str, Callable[[Actor, Any], bool]] = {
    "aup.publish": _staff,
    "aup.accept": lambda actor, agent: principal_permissions.can(actor, "agent.issue_token", agent),
}


def can(actor: Actor, verb: str, obj: Any = None) -> bool:
    """Say whether `actor` may do `verb` to `obj`."""
    return RULES[verb](actor, obj)


def require(actor: Actor, verb: str, obj: Any = None, *, remedy: str = "") -> None:
    """Raise `NotAllowed` unless `actor` may do `verb` to `obj`."""
    if not can(actor, verb, obj):
        raise NotAllowed(f"{actor.ref.label or 'You'} may not do this ({verb}).", code="not_allowed", remedy=remedy)

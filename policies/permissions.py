"""Who may do what in `policies`."""

from collections.abc import Callable
from typing import Any

from policies.models import TrialGrant
from portal.core.errors import NotAllowed
from principals import permissions as principal_permissions
from principals.actors import Actor
from principals.models import Lab


def _staff(actor: Actor, _: Any) -> bool:
    return principal_permissions.can(actor, "facility.run")


def _reviewer(actor: Actor, _: Any) -> bool:
    return actor.is_person and (actor.is_research_computing or actor.is_infosec)


def _works_in(actor: Actor, lab: Lab) -> bool:
    return actor.user is not None and lab.pk in actor.member_lab_ids


def _may_cancel(actor: Actor, trial: TrialGrant) -> bool:
    if actor.user is not None and trial.user_id == actor.user.pk:
        return actor.agent is None or actor.agent.lab_id == trial.lab_id
    return principal_permissions.can(actor, "lab.manage", trial.lab)


RULES: dict[str, Callable[[Actor, Any], bool]] = {
    "aup.publish": _staff,
    "aup.accept": lambda actor, agent: principal_permissions.can(actor, "agent.issue_token", agent),
    "trial.request": _works_in,
    "trial.cancel": _may_cancel,
    "trial.set_limits": _staff,
    "extension.submit": lambda actor, _: actor.user is not None,
    "extension.decide": _reviewer,
}


def can(actor: Actor, verb: str, obj: Any = None) -> bool:
    """Say whether `actor` may do `verb` to `obj`."""
    return RULES[verb](actor, obj)


def require(actor: Actor, verb: str, obj: Any = None, *, remedy: str = "") -> None:
    """Raise `NotAllowed` unless `actor` may do `verb` to `obj`."""
    if not can(actor, verb, obj):
        raise NotAllowed(f"{actor.ref.label or 'You'} may not do this ({verb}).", code="not_allowed", remedy=remedy)

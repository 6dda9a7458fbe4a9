"""Who may do what in `policies`."""

from typing import Any

from policies.models import TrialGrant
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


RULES: principal_permissions.Rules = {
    "aup.publish": _staff,
    "aup.accept": lambda actor, agent: principal_permissions.can(actor, "agent.issue_token", agent),
    "aup.export": lambda actor, _: actor.is_person and (actor.sees_facility or bool(actor.managed_lab_ids)),
    "trial.request": _works_in,
    "trial.cancel": _may_cancel,
    "trial.set_limits": _staff,
    "extension.submit": lambda actor, _: actor.user is not None and not actor.is_auditor,
    "extension.decide": _reviewer,
}
_book = principal_permissions.Rulebook(RULES)
can, require = _book.can, _book.require

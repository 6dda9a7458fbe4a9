"""Setting the limits of trials: the facility's, and labs' own."""

from django.core.exceptions import ValidationError
from django.db import transaction
from django.forms.models import model_to_dict

from policies import permissions
from policies.models import TrialPolicy
from portal.core import audit, clock
from portal.core.errors import Invalid
from principals.actors import Actor
from principals.models import Lab

LIMITS = (
    "max_minutes", "max_gpus", "max_nodes", "person_trials", "person_gpu_minutes", "lab_trials", "lab_gpu_minutes",
    "valid_minutes", "qos", "partition",
)  # fmt: skip


def set_trial_limits(*, actor: Actor, lab: Lab | None, limits: dict[str, int | str]) -> TrialPolicy:
    """Set the limits of a lab, or of the facility for `lab=None`; fields not named in `limits` keep their value.

    They hold for the next request; trials granted stay granted. Errors: `Invalid` with the field.
    """
    permissions.require(actor, "trial.set_limits")
    if unknown := set(limits) - set(LIMITS):
        raise Invalid(f"There is no limit {min(unknown)}.", code="limit_unknown")
    with transaction.atomic():
        policy = TrialPolicy.objects.select_for_update().filter(lab=lab).first() or TrialPolicy(lab=lab)
        before = model_to_dict(policy, LIMITS) if policy.pk else {}
        for name, value in limits.items():
            setattr(policy, name, value)
        policy.changed_at, policy.changed_by = clock.now(), actor.ref.label
        _validate(policy)
        policy.save()
        audit.record(
            actor=actor.ref, verb="trial.set_limits", object_kind="lab" if lab else "facility",
            object_id=lab.pk if lab else "trials", object_label=lab.name if lab else "trial limits",
            lab_id=lab.pk if lab else None, before=before, after=model_to_dict(policy, LIMITS),
        )  # fmt: skip
    return policy


def _validate(policy: TrialPolicy) -> None:
    try:
        policy.clean_fields()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise Invalid(messages[0], code="limit_out_of_range", extra={"field": field}) from error
    for person, lab in (("person_trials", "lab_trials"), ("person_gpu_minutes", "lab_gpu_minutes")):
        if getattr(policy, person) > getattr(policy, lab):
            raise Invalid(
                "A person’s budget lies inside the lab’s; it cannot be larger.", code="limit_out_of_range",
                extra={"field": person},
            )  # fmt: skip


def drop_trial_limits(*, actor: Actor, lab: Lab) -> bool:
    """Take a lab's own limits away, so that the facility's hold again; say whether it had any."""
    permissions.require(actor, "trial.set_limits")
    with transaction.atomic():
        policy = TrialPolicy.objects.select_for_update().filter(lab=lab).first()
        if policy is None:
            return False
        audit.record(
            actor=actor.ref, verb="trial.drop_limits", object_kind="lab", object_id=lab.pk, object_label=lab.name,
            lab_id=lab.pk, before=model_to_dict(policy, LIMITS),
        )  # fmt: skip
        policy.delete()
    return True

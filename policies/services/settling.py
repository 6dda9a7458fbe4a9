"""Settling trials: finding the job of each receipt, and closing those that no job came for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from policies import events
from policies.models import TrialGrant, TrialRefusal
from policies.services.trials import tell
from portal.core import audit, clock
from principals.actors import SYSTEM_ACTOR
from telemetry.engine import labels, receipts
from telemetry.models import Job

CHUNK = 500
# Hooks and readers tell of jobs late; a receipt that expired is still matched for a day.
LATE = timedelta(days=1)
REFUSALS_KEPT = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Settled:
    """How many receipts got their job, how many expired, how many old refusals were deleted."""

    used: int
    expired: int
    pruned: int


def settle_trials() -> Settled:
    """Match jobs to receipts, expire the rest, delete refusals past their term. Doing it twice changes nothing.

    A job is a trial's when it ran on its cluster under its person's login, in its lab, was submitted while the receipt
    was valid, and names the receipt in its comment or the administrator's; the first such job is. A job that names none
    is a trial's when it ran in its QoS, jobs and receipts paired oldest first; one that names another receipt, or
    several, is not. Without a QoS of its own nothing but a comment tells a trial from another job. A job that came in
    spite of a cancellation charges the receipt again.
    """
    used = sum(_match(chunk) for chunk in _chunks())
    now = clock.now()
    with transaction.atomic():
        late = TrialGrant.objects.filter(state=TrialGrant.State.GRANTED, valid_until__lte=now)
        expired = late.update(state=TrialGrant.State.EXPIRED)
        if used or expired:
            audit.record(
                actor=SYSTEM_ACTOR.ref, verb="trial.settle", object_kind="trial", object_id="batch",
                after={"used": used, "expired": expired},
            )  # fmt: skip
    pruned, _ = TrialRefusal.objects.filter(at__lt=now - REFUSALS_KEPT).delete()
    return Settled(used, expired, pruned)


def _chunks() -> Iterable[list[TrialGrant]]:
    waiting = TrialGrant.objects.filter(job=None, valid_until__gt=clock.now() - LATE)
    # Cancelled ones last: a job belongs to a receipt that stands before it belongs to one that was given back.
    for wanted in (waiting.charged(), waiting.filter(state=TrialGrant.State.CANCELLED)):
        pks = list(wanted.order_by("granted_at", "pk").values_list("pk", flat=True))
        for start in range(0, len(pks), CHUNK):
            chosen = TrialGrant.objects.filter(pk__in=pks[start : start + CHUNK]).select_related("cluster")
            yield list(chosen.order_by("granted_at", "pk"))


def _match(grants: list[TrialGrant]) -> int:
    named, unnamed = _candidates(grants)
    matched = 0
    with transaction.atomic():
        for grant in grants:
            job = next((job for job in named.get(grant.public_id, ()) if _is_of(job, grant)), None)
            if job is None and grant.qos:
                job = next((job for job in unnamed if job.qos == grant.qos and _is_of(job, grant)), None)
            if job is not None and grant.move(old=grant.state, new=TrialGrant.State.USED, job=job):
                if job in unnamed:
                    unnamed.remove(job)
                tell(grant, events.TRIAL_USED)
                matched += 1
    return matched


def _candidates(grants: list[TrialGrant]) -> tuple[dict[str, list[Job]], list[Job]]:
    """Return the jobs that may be of some receipts, oldest first: by the receipt they name, and those without one."""
    in_qos = Q(qos__in={grant.qos for grant in grants if grant.qos})
    jobs = Job.objects.filter(
        in_qos | _names_a_trial("Comment") | _names_a_trial(labels.COLUMN),
        trial=None, lab_id__in={grant.lab_id for grant in grants},
        cluster_user__user_id__in={grant.user_id for grant in grants},
        submit__gte=min(grant.granted_at for grant in grants).replace(microsecond=0),
        submit__lte=max(grant.valid_until for grant in grants),
    ).select_related("cluster_user").order_by("submit", "pk")  # fmt: skip
    named: dict[str, list[Job]] = {}
    unnamed = []
    for job in jobs:
        named_ones = receipts.receipts_of(job.comment, job.extra)
        trials = [name for name in named_ones if name.startswith(receipts.TRIAL)]
        if not trials:
            unnamed.append(job)
        elif len(trials) == 1:
            named.setdefault(trials[0], []).append(job)
    return named, unnamed


def _names_a_trial(column: str) -> Q:
    return Q(**{f"extra__{column}__icontains": receipts.TRIAL})


def _is_of(job: Job, grant: TrialGrant) -> bool:
    return (
        (job.cluster_id, job.lab_id) == (grant.cluster_id, grant.lab_id)
        and job.cluster_user.user_id == grant.user_id
        # Slurm's times are whole seconds.
        and grant.granted_at.replace(microsecond=0) <= job.submit <= grant.valid_until
    )

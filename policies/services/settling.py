"""Settling trials: finding the job of each receipt, and closing those that no job came for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from policies import events
from policies.models import TrialGrant, TrialRefusal
from policies.services.trials import tell
from portal.core import audit, clock
from principals.actors import SYSTEM_ACTOR
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

    A job is a trial's when it ran on its cluster under its person's login, in its lab and QoS, and was submitted
    while the receipt was valid; jobs and receipts are paired oldest first. Without a QoS of its own nothing tells a
    trial from another job, and its receipts only expire. A job that came in spite of a cancellation charges the
    receipt again.
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
    waiting = TrialGrant.objects.filter(job=None, valid_until__gt=clock.now() - LATE).exclude(qos="")
    # Cancelled ones last: a job belongs to a receipt that stands before it belongs to one that was given back.
    for wanted in (waiting.charged(), waiting.filter(state=TrialGrant.State.CANCELLED)):
        pks = list(wanted.order_by("granted_at", "pk").values_list("pk", flat=True))
        for start in range(0, len(pks), CHUNK):
            chosen = TrialGrant.objects.filter(pk__in=pks[start : start + CHUNK]).select_related("cluster")
            yield list(chosen.order_by("granted_at", "pk"))


def _match(grants: list[TrialGrant]) -> int:
    jobs = list(
        Job.objects.filter(
            trial=None, lab_id__in={grant.lab_id for grant in grants}, qos__in={grant.qos for grant in grants},
            submit__gte=min(grant.granted_at for grant in grants),
            submit__lte=max(grant.valid_until for grant in grants),
        ).select_related("cluster_user").order_by("submit", "pk")
    )  # fmt: skip
    matched = 0
    with transaction.atomic():
        for grant in grants:
            job = next((job for job in jobs if _is_of(job, grant)), None)
            if job is not None and grant.move(old=grant.state, new=TrialGrant.State.USED, job=job):
                jobs.remove(job)
                tell(grant, events.TRIAL_USED)
                matched += 1
    return matched


def _is_of(job: Job, grant: TrialGrant) -> bool:
    return (
        (job.cluster_id, job.lab_id, job.qos) == (grant.cluster_id, grant.lab_id, grant.qos)
        and job.cluster_user.user_id == grant.user_id
        # Slurm's times are whole seconds.
        and grant.granted_at.replace(microsecond=0) <= job.submit <= grant.valid_until
    )

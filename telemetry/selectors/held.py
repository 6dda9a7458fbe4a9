"""Which of the jobs that were last reported as queued or running Slurm can still hold now.

A file of last year, or an end that was never told, leaves records in an active state for ever.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final, TypeVar

from django.db.models import BigIntegerField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Value

from portal.core import clock
from telemetry.models import Job, JobState

JobsT = TypeVar("JobsT", bound=QuerySet[Job])
GRACE: Final = timedelta(hours=1)  # slurmctld ends a job a little after its limit, and readers tell it later still
SILENCE: Final = timedelta(days=7)  # after so long without a word there is no more "now"


def held_now(jobs: JobsT) -> JobsT:
    """Narrow jobs in an active state to those that Slurm can still hold.

    One that started is held while its time limit (sbatch(1) --time) has not run out, or it was seen running within
    the last hour; without a limit, or suspended, while it was seen within seven days. One that waits is held while
    its cluster tells of anything within seven days, or it was submitted in these.
    """
    now = clock.now()
    long_ago = now - SILENCE
    runs_for = ExpressionWrapper(Value(int((now - GRACE).timestamp())) - F("start"), output_field=BigIntegerField())
    in_time = ~Q(state=JobState.SUSPENDED) & Q(timelimit_s__gte=runs_for)
    endless = Q(timelimit_s=None) | Q(state=JobState.SUSPENDED)
    started = Q(usage_end__gte=now - GRACE) | in_time | (endless & Q(usage_end__gte=long_ago))
    told = Exists(Job.objects.filter(cluster=OuterRef("cluster"), usage_end__gte=long_ago))
    waits = Q(start=None) & (Q(submit__gte=long_ago) | told)
    return jobs.filter(waits | (Q(start__isnull=False) & started))


def find_stale(jobs: Iterable[Job]) -> set[int]:
    """Return the ids of those jobs, of a page, whose active state is of the past: one query at most."""
    active = {job.pk for job in jobs if job.is_active}
    if not active:
        return set()
    held = held_now(Job.objects.filter(pk__in=active)).values_list("pk", flat=True)
    return active - set(held)

"""Trials over a period: their jobs, whose they were, and how long they had waited."""

from dataclasses import dataclass

from django.db.models import Q

from policies.engine.trial_abuse import TrialRun
from policies.models import TrialGrant
from policies.models.trials import TrialGrantQuerySet
from telemetry.selectors import Period, Scope


@dataclass(frozen=True, slots=True)
class TrialWait:
    """How long the job of a trial had waited, and whose it was."""

    person: int
    wait_s: float


def started_in(period: Period) -> Q:
    """The condition that a trial's job started in a period."""
    return Q(job__start__gte=period.starts, job__start__lt=period.ends)


def ended_in(period: Period) -> Q:
    """The condition that a trial's job ended in a period after having started."""
    return Q(job__end__gte=period.starts, job__end__lt=period.ends, job__start__isnull=False)


def has_any(scope: Scope) -> bool:
    """Say whether a trial's job was ever known on the cluster."""
    return _with_jobs(scope).exists()


def trial_waits(scope: Scope) -> list[TrialWait]:
    """Return the waits of trials whose job started in the period."""
    started = _with_jobs(scope).filter(started_in(scope.period))
    return [
        TrialWait(person, (start - submit).total_seconds())
        for person, submit, start in started.values_list("user_id", "job__submit", "job__start")
        if submit and start
    ]


def trial_runs(scope: Scope) -> list[TrialRun]:
    """Return the trials whose job ended in the period after having started, oldest first."""
    ended = _with_jobs(scope).filter(ended_in(scope.period))
    return [
        TrialRun(
            person=grant.user_id, work=(grant.lab_id, grant.job.job_name, grant.job.work_dir),
            start_s=int(grant.job.start.timestamp()), end_s=int(grant.job.end.timestamp()),
            limit_s=grant.job.timelimit_s or 0, gpus=grant.job.gpus, nodes=grant.job.nodes,
            granted_s=grant.minutes * 60, granted_gpus=grant.gpus, granted_nodes=grant.nodes,
        )
        for grant in ended.select_related("job").order_by("job__start", "pk")
        if grant.job and grant.job.start and grant.job.end
    ]  # fmt: skip


def _with_jobs(scope: Scope) -> TrialGrantQuerySet:
    return TrialGrant.objects.visible_to(scope.actor).filter(cluster=scope.cluster, job__isnull=False)

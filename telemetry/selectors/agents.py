"""What each registered agent's jobs came to."""

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet, Sum

from principals.models import Agent
from telemetry.models import Job, JobState
from telemetry.selectors.held import held_now
from telemetry.selectors.job_usage import ran_within, usage_sums
from telemetry.selectors.scope import Scope
from telemetry.selectors.totals import HOUR_S, ratio


@dataclass(frozen=True, slots=True)
class AgentLoad:
    """One agent's jobs in the period: submissions by submit, hours by when they ran."""

    agent: Agent
    submissions: int
    ended: int
    cancelled: int
    core_s: int
    gpu_s: int

    @property
    def core_hours(self) -> float:
        return self.core_s / HOUR_S

    @property
    def gpu_hours(self) -> float:
        return self.gpu_s / HOUR_S

    @property
    def cancelled_share(self) -> float | None:
        return ratio(self.cancelled, self.ended)


def count_running(agents: QuerySet[Agent]) -> int:
    """Count the jobs of some agents that Slurm can still hold in its queue, array tasks one by one."""
    held = held_now(Job.objects.active().filter(agent__in=agents))
    return held.aggregate(tasks=Sum("array_tasks"))["tasks"] or 0


def by_agent(scope: Scope) -> list[AgentLoad]:
    """Add up the jobs of each agent that the actor may see, most GPU- and core-hours first; four queries.

    Read from jobs, for rollups do not know agents. Agents without jobs are there, with zeros.
    """
    agents = Agent.objects.visible_to(scope.actor).select_related("owner", "lab")
    if scope.lab:
        agents = agents.filter(lab=scope.lab)
    known = {agent.pk: agent for agent in agents}
    jobs = Job.objects.visible_to(scope.actor).filter(cluster=scope.cluster, agent__in=known)
    if scope.lab:
        jobs = jobs.filter(lab=scope.lab)
    lo, hi = int(scope.period.starts.timestamp()), int(scope.period.ends.timestamp())
    by = "agent"
    sums = [
        jobs.filter(submit__gte=lo, submit__lt=hi).values(by).annotate(submissions=Sum("array_tasks")),
        ran_within(jobs, lo, hi).values(by).annotate(**usage_sums(lo, hi)),
        jobs.filter(end__gte=lo, end__lt=hi)
        .values(by)
        .annotate(ended=Count("pk"), cancelled=Count("pk", filter=Q(state=JobState.CANCELLED))),
    ]
    found: dict[int, dict[str, int]] = {pk: {} for pk in known}
    for rows in sums:
        for row in rows:
            found[row.pop(by)] |= row
    names = ("submissions", "ended", "cancelled", "core_s", "gpu_s")
    loads = [AgentLoad(known[pk], *(sum_.get(name, 0) for name in names)) for pk, sum_ in found.items()]
    return sorted(loads, key=lambda load: (-load.gpu_s, -load.core_s, load.agent.name))

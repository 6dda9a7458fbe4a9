"""What users ask of the scheduler, beside what they submit: who polls, and who reads events instead."""

from collections import Counter
from dataclasses import dataclass
from datetime import date

from django.db.models import F, Q, Sum

from telemetry.models import Actor, RollupDay, SchedulerCalls, ShimUse
from telemetry.selectors.loads import Loads
from telemetry.selectors.scope import Definition, Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """One user's calls of some days. `runs_agents`: an agent submitted a job of theirs in these days."""

    cluster: str
    login: str
    calls: int
    busy_us: int
    submissions: int
    runs_agents: bool

    @property
    def calls_per_submission(self) -> float | None:
        """Calls for each job submitted; None where none was."""
        return self.calls / self.submissions if self.submissions else None

    @property
    def mean_ms(self) -> float:
        """How long the controller works on one call."""
        return self.busy_us / self.calls / 1000


def busiest_callers(*, first: date, last: date, limit: int = 10) -> list[Caller]:
    """Return who asked most on the UTC days from `first` to `last`, both inclusive: two queries."""
    days = Q(day__gte=first, day__lte=last)
    found = (
        SchedulerCalls.objects.filter(days)
        .values("cluster_user_id", login=F("cluster_user__login"), name=F("cluster__name"))
        .annotate(all_calls=Sum("calls"), all_busy_us=Sum("busy_us"))
        .filter(all_calls__gt=0)
        .order_by("-all_calls", "login")[:limit]
    )
    users = [row["cluster_user_id"] for row in found]
    jobs = RollupDay.objects.filter(days, cluster_user_id__in=users).values_list("cluster_user_id")
    sums = jobs.annotate(Sum("submissions"), agents=Sum("submissions", filter=Q(actor=Actor.AGENT), default=0))
    submitted = {user: (number, by_agents > 0) for user, number, by_agents in sums}
    return [
        Caller(
            row["name"], row["login"], row["all_calls"], row["all_busy_us"],
            *submitted.get(row["cluster_user_id"], (0, False)),
        )
        for row in found
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShimUses:
    """How often a command of agents was answered in one way; `reason` is why it was left to Slurm's own."""

    cluster: str
    program: str
    outcome: str
    reason: str
    times: int


def shim_uses(*, first: date, last: date) -> list[ShimUses]:
    """Return how `gatehouse squeue` and `sacct` were answered on some UTC days, both inclusive, most often first."""
    found = (
        ShimUse.objects.filter(day__gte=first, day__lte=last)
        .values("program", "outcome", "reason", name=F("cluster__name"))
        .annotate(all_times=Sum("times"))
        .order_by("-all_times", "name", "program", "outcome", "reason")
    )
    return [
        ShimUses(
            row["name"], row["program"], ShimUse.Outcome(row["outcome"]).label, row["reason"].replace("_", " "),
            row["all_times"],
        )
        for row in found
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asking:
    """What one login name asked of the scheduler and what it submitted, on days whose counts are known.

    `harness` is that of most of its agents' jobs in the period, "" where it has none.
    """

    actor: str
    harness: str
    calls: int
    submissions: int


def asking(scope: Scope, *, loads: Loads | None = None) -> list[Asking]:
    """Return each login name that asked or submitted; three queries beside its loads. One with agents is an agent's.

    Empty where no day of the period has counts.
    """
    counts = SchedulerCalls.objects.filter(scope.period.holds_day, cluster=scope.cluster)
    days = list(counts.values_list("day", flat=True).distinct().order_by("day"))
    if not days:
        return []
    calls = Counter(dict(counts.values_list("cluster_user").annotate(Sum("calls")).order_by()))
    rows = scope.attributed(Definition.ACCOUNT).filter(day__in=days)
    jobs = list(rows.values_list("cluster_user", "who").annotate(Sum("submissions")).order_by())
    harnesses = (loads or Loads(scope)).main_harnesses
    found = [Asking(who, harnesses.get(user, ""), calls.pop(user, 0), jobs) for user, who, jobs in jobs]
    # Who only asked has no job to be told by.
    return found + [Asking(Actor.UNKNOWN, "", asked, 0) for asked in calls.values()]

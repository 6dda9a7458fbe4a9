"""What a lab's agents did and what it cost: the figures of My lab."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Max, Q, Sum
from django.db.models.functions import Coalesce

from portal.core import clock
from principals.actors import Actor
from principals.engine.harnesses import harness_name
from principals.models import Agent, Lab
from telemetry.models import Job, JobState, RollupDay

PERIOD_DAYS = 30
LOST = [JobState.FAILED, JobState.CANCELLED, JobState.TIMEOUT, JobState.OUT_OF_MEMORY, JobState.NODE_FAIL]


@dataclass(frozen=True, slots=True)
class Usage:
    """Jobs, hours and their price."""

    jobs: int = 0
    core_s: int = 0
    gpu_s: int = 0
    lost_jobs: int = 0

    @property
    def core_hours(self) -> float:
        return self.core_s / 3600

    @property
    def gpu_hours(self) -> float:
        return self.gpu_s / 3600

    @property
    def cost(self) -> float:
        """In the site's currency, at its prices for a core-hour and a GPU-hour."""
        return self.core_hours * settings.PRICE_CORE_HOUR + self.gpu_hours * settings.PRICE_GPU_HOUR


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent's usage in the period; core and GPU time of whole jobs submitted in it."""

    agent: Agent
    harness: str
    usage: Usage
    cancelled_share: float | None


@dataclass(frozen=True, slots=True)
class LabFigures:
    """The figures of a lab for the last thirty days."""

    first: date
    last: date
    agents: Usage
    lab: Usage
    lost_core_s: int
    rows: list[AgentRow] = field(default_factory=list)
    days: list[date] = field(default_factory=list)
    agent_cost_by_day: list[float] = field(default_factory=list)
    people_cost_by_day: list[float] = field(default_factory=list)

    @property
    def lost_cost(self) -> float:
        return self.lost_core_s / 3600 * float(settings.PRICE_CORE_HOUR)


def lab_figures(actor: Actor, lab: Lab) -> LabFigures | None:
    """Return a lab's figures for the thirty days up to its newest day with data; None where there are none."""
    rollups = RollupDay.objects.visible_to(actor).filter(lab=lab)
    last = rollups.aggregate(last=Max("day"))["last"]
    if last is None:
        return None
    first = last - timedelta(days=PERIOD_DAYS - 1)
    within = rollups.filter(day__gte=first, day__lte=last)
    totals = _usages(within)
    lost = within.filter(actor="agent").aggregate(lost=Coalesce(Sum("ended_lost_core_s"), 0))["lost"]
    days = [first + timedelta(days=number) for number in range(PERIOD_DAYS)]
    by_day = _cost_by_day(within)
    everyone = Usage(*map(sum, zip(*map(_tuple, totals.values()), strict=True)))
    return LabFigures(
        first=first,
        last=last,
        agents=totals.get("agent", Usage()),
        lab=everyone,
        lost_core_s=lost,
        rows=_agent_rows(actor, lab, first),
        days=days,
        agent_cost_by_day=[by_day.get(("agent", day), 0.0) for day in days],
        people_cost_by_day=[by_day.get(("human", day), 0.0) + by_day.get(("unknown", day), 0.0) for day in days],
    )


def _tuple(usage: Usage) -> tuple[int, int, int, int]:
    return usage.jobs, usage.core_s, usage.gpu_s, usage.lost_jobs


def _usages(rows: Any) -> dict[str, Usage]:
    grouped = rows.values("actor").annotate(
        jobs=Sum("submissions"), cores=Sum("core_s"), gpus=Sum("gpu_s"), lost=Sum("ended_failed")
    )
    return {row["actor"]: Usage(row["jobs"], row["cores"], row["gpus"], row["lost"]) for row in grouped.order_by()}


def _cost_by_day(rows: Any) -> dict[tuple[str, date], float]:
    grouped = rows.values("actor", "day").annotate(cores=Sum("core_s"), gpus=Sum("gpu_s")).order_by()
    return {(row["actor"], row["day"]): Usage(0, row["cores"], row["gpus"]).cost for row in grouped}


def _agent_rows(actor: Actor, lab: Lab, first: date) -> list[AgentRow]:
    since = clock.now() - timedelta(days=PERIOD_DAYS)
    grouped = (
        Job.objects.visible_to(actor)
        .filter(session__agent__lab=lab, submit__gte=min(since, _midnight(first)))
        .values("session__agent")
        .annotate(
            jobs=Sum("array_tasks"),
            cores=Coalesce(Sum(F("elapsed_s") * F("cpus")), 0),
            gpu_time=Coalesce(Sum(F("elapsed_s") * F("gpus")), 0),
            lost=Count("pk", filter=Q(state__in=LOST)),
            cancelled=Count("pk", filter=Q(state=JobState.CANCELLED)),
            records=Count("pk"),
        )
        .order_by()
    )
    usage = {row["session__agent"]: row for row in grouped}
    agents = lab.agents.exclude(status=Agent.Status.RETIRED).select_related("owner")
    rows = [_agent_row(agent, usage.get(agent.pk)) for agent in agents]
    return sorted(rows, key=lambda row: (-row.usage.cost, row.agent.name))


def _agent_row(agent: Agent, row: Mapping[str, Any] | None) -> AgentRow:
    if row is None:
        return AgentRow(agent, harness_name(agent.harness), Usage(), None)
    used = Usage(row["jobs"], row["cores"], row["gpu_time"], row["lost"])
    return AgentRow(agent, harness_name(agent.harness), used, row["cancelled"] / row["records"])


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)

"""What a lab's agents did and what it cost: My lab's figures, from the selectors that reports use, priced."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

from principals.actors import Actor as Principal
from principals.engine.harnesses import harness_name
from principals.models import Agent, Lab
from telemetry import selectors
from telemetry.models import Actor, RollupDay
from telemetry.selectors import AgentLoad, DayLoad, Period, Scope, Totals

PERIOD_DAYS = 30
HOUR_S = 3600


def price(core_s: int, gpu_s: int) -> float:
    """Return what core and GPU time cost, in the site's currency."""
    hours: float = core_s / HOUR_S * settings.PRICE_CORE_HOUR + gpu_s / HOUR_S * settings.PRICE_GPU_HOUR
    return hours


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent's load and its price."""

    load: AgentLoad

    @property
    def agent(self) -> Agent:
        return self.load.agent

    @property
    def harness(self) -> str:
        return harness_name(self.load.agent.harness)

    @property
    def cost(self) -> float:
        return price(self.load.core_s, self.load.gpu_s)


@dataclass(frozen=True, slots=True)
class LabFigures:
    """The figures of a lab on one cluster."""

    scope: Scope
    agents: Totals
    lab: Totals
    rows: list[AgentRow]
    days: list[DayLoad]

    @property
    def period(self) -> Period:
        return self.scope.period

    @property
    def agents_cost(self) -> float:
        return price(self.agents.core_s, self.agents.gpu_s)

    @property
    def lab_cost(self) -> float:
        return price(self.lab.core_s, self.lab.gpu_s)

    @property
    def lost_cost(self) -> float:
        """The price of agents' core time in jobs that failed, timed out or were cancelled."""
        return price(self.agents.ended_lost_core_s, 0)

    @property
    def agent_cost_by_day(self) -> list[float]:
        return [price(day.core_s.agent, day.gpu_s.agent) for day in self.days]

    @property
    def people_cost_by_day(self) -> list[float]:
        """People's and what is not attributed: everything of the lab that is not an agent's."""
        return [price(day.core_s.total - day.core_s.agent, day.gpu_s.total - day.gpu_s.agent) for day in self.days]


def lab_figures(actor: Principal, lab: Lab) -> LabFigures | None:
    """Return a lab's figures for thirty days on the cluster it used last; None where it ran nothing yet."""
    newest = RollupDay.objects.visible_to(actor).filter(lab=lab).order_by("-day").select_related("cluster").first()
    if newest is None:
        return None
    period = Period(newest.day - timedelta(days=PERIOD_DAYS - 1), newest.day)
    scope = Scope(actor, newest.cluster, period, lab)
    loads = selectors.Loads(scope)
    living = [load for load in selectors.by_agent(scope) if load.agent.status != Agent.Status.RETIRED]
    rows = sorted(map(AgentRow, living), key=lambda row: (-row.cost, row.agent.name))
    return LabFigures(
        scope=scope,
        agents=selectors.totals_by_actor(scope, loads=loads)[Actor.AGENT],
        lab=loads.whole,
        rows=rows,
        days=selectors.by_day(scope),
    )

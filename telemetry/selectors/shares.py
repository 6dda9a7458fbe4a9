"""Agents' shares of people, submissions, core-hours and GPU-hours; by harness and by day."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Sum

from principals.engine.harnesses import harness_name
from telemetry.models import Actor, RollupHour
from telemetry.selectors.loads import Loads, totals_by_actor
from telemetry.selectors.scope import Definition, Scope
from telemetry.selectors.totals import ratio

MEASURES = ("submissions", "core_s", "gpu_s")
_SUMS = {f"{name}_": Sum(name) for name in MEASURES}


@dataclass(frozen=True, slots=True)
class Split:
    """A whole in three parts: agents', people's, and what is not attributed."""

    agent: int
    human: int
    unknown: int

    @property
    def total(self) -> int:
        return self.agent + self.human + self.unknown

    def of(self, actor: str) -> int:
        """Return one part."""
        return int(getattr(self, actor))

    def share(self, actor: str = Actor.AGENT) -> float | None:
        """Return one part as a share of the whole (0 to 1); None where the whole is nothing."""
        return ratio(self.of(actor), self.total)


@dataclass(frozen=True, slots=True)
class Shares:
    """The four measures of the paper's Figure 2a, under one definition of an agent."""

    definition: Definition
    users: Split
    submissions: Split
    core_s: Split
    gpu_s: Split

    def over_representation(self, measure: str) -> float | None:
        """How many times agents' share of people their share of a measure is."""
        share, of_people = getattr(self, measure).share(), self.users.share()
        return ratio(share, of_people) if share is not None and of_people else None


def shares(scope: Scope, definition: Definition, *, loads: Loads | None = None) -> Shares:
    """Split the four measures by actor.

    People are login names with any job in the period; each counts once: an agent user first, then people, then those
    of whom nothing is known.
    """
    loads = loads or Loads(scope)
    sums = totals_by_actor(scope, definition, loads=loads)
    measures = {name: Split(*(getattr(sums[actor], name) for actor in Actor.values)) for name in MEASURES}
    return Shares(definition=definition, users=_people(loads, definition), **measures)


def _people(loads: Loads, definition: Definition) -> Split:
    users: dict[str, set[int]] = defaultdict(set)
    who = loads.who(definition)
    for load in loads.rows:
        users[who(load)].add(load.user)
    agents, people = users[Actor.AGENT], users[Actor.HUMAN] - users[Actor.AGENT]
    return Split(len(agents), len(people), len(users[Actor.UNKNOWN] - people - agents))


@dataclass(frozen=True, slots=True)
class HarnessLoad:
    """What the jobs of one harness made. `users` are people who submitted most of their agent jobs under it."""

    harness: str
    users: int
    submissions: int
    core_s: int
    gpu_s: int

    @property
    def name(self) -> str:
        return harness_name(self.harness) if self.harness else "Harness not known"

    @property
    def people(self) -> int:
        return self.users


def by_harness(scope: Scope, *, loads: Loads | None = None) -> list[HarnessLoad]:
    """Split agents' jobs by harness, most submissions first. The rows add up to agents' totals."""
    loads = loads or Loads(scope)
    users = Counter(loads.main_harnesses.values())
    found = loads.totals(by=lambda load: load.harness if load.actor == Actor.AGENT else None)
    rows = [
        HarnessLoad(harness, users[harness], **{name: getattr(sums, name) for name in MEASURES})
        for harness, sums in found.items()
        if harness is not None
    ]
    return sorted(rows, key=lambda row: (-row.submissions, row.harness))


@dataclass(frozen=True, slots=True)
class DayLoad:
    """One UTC day's measures by actor."""

    day: date
    submissions: Split
    core_s: Split
    gpu_s: Split


def by_day(scope: Scope, definition: Definition = Definition.JOB) -> list[DayLoad]:
    """Split each day of the period by actor, empty days included; one query. The days add up to `shares`."""
    is_whole = definition is Definition.JOB and scope.lab is None and scope.actor.sees_facility
    sums: dict[tuple[date, str], Counter[str]] = defaultdict(Counter)
    for day, who, *amounts in _by_hour(scope) if is_whole else _by_user_day(scope, definition):
        sums[day, who].update(dict(zip(MEASURES, amounts, strict=True)))

    def split(day: date, measure: str) -> Split:
        return Split(*(sums[day, actor][measure] for actor in Actor.values))

    return [DayLoad(day, *(split(day, measure) for measure in MEASURES)) for day in scope.period.days]


def _by_user_day(scope: Scope, definition: Definition) -> Iterator[tuple[Any, ...]]:
    rows = scope.attributed(definition).values_list("day", "who").annotate(**_SUMS).order_by()
    return iter(rows)


def _by_hour(scope: Scope) -> Iterator[tuple[Any, ...]]:
    """Yield the whole cluster's hours by actor under their days: far fewer rows than its users'."""
    hours = RollupHour.objects.filter(
        cluster=scope.cluster, hour__gte=scope.period.starts, hour__lt=scope.period.ends
    )  # fmt: skip
    for hour, *rest in hours.values_list("hour", "actor").annotate(**_SUMS).order_by():
        yield (hour.date(), *rest)

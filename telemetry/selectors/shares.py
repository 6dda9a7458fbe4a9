"""Agents' shares of people, submissions, core-hours and GPU-hours; by harness and by day."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Count, Q, Sum

from principals.engine.harnesses import harness_name
from telemetry.models import Actor
from telemetry.selectors.scope import Definition, Scope
from telemetry.selectors.totals import ratio, totals_by_actor

MEASURES = ("submissions", "core_s", "gpu_s")


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


def shares(scope: Scope, definition: Definition) -> Shares:
    """Split the four measures by actor; two queries.

    People are login names with any job in the period; each counts once: an agent user first, then people, then those
    of whom nothing is known.
    """
    sums = totals_by_actor(scope, definition)
    measures = {name: Split(*(getattr(sums[actor], name) for actor in Actor.values)) for name in MEASURES}
    return Shares(definition=definition, users=_people(scope, definition), **measures)


def _people(scope: Scope, definition: Definition) -> Split:
    rows = scope.attributed(definition)
    agents = rows.filter(who=Actor.AGENT).values("cluster_user")
    is_agent = Q(cluster_user__in=agents)
    found = rows.aggregate(
        everybody=Count("cluster_user", distinct=True),
        agents=Count("cluster_user", distinct=True, filter=is_agent),
        humans=Count("cluster_user", distinct=True, filter=Q(who=Actor.HUMAN) & ~is_agent),
    )
    return Split(found["agents"], found["humans"], found["everybody"] - found["agents"] - found["humans"])


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


def by_harness(scope: Scope) -> list[HarnessLoad]:
    """Split agents' jobs by harness, most submissions first; one query. The rows add up to agents' totals."""
    rows = list(_by_user_and_harness(scope))
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        sums[row["harness"]].update({name: row[f"{name}_"] for name in MEASURES})
    users = Counter(_main(rows).values())
    loads = [HarnessLoad(harness=h, users=users[h], **{name: s[name] for name in MEASURES}) for h, s in sums.items()]
    return sorted(loads, key=lambda load: (-load.submissions, load.harness))


def main_harnesses(scope: Scope) -> dict[int, str]:
    """Return the harness of most of each login name's agent jobs; one query."""
    return _main(_by_user_and_harness(scope))


def _by_user_and_harness(scope: Scope) -> Iterable[Any]:
    return (
        scope.rollups()
        .filter(actor=Actor.AGENT)
        .values("harness", "cluster_user")
        .annotate(**{f"{name}_": Sum(name) for name in MEASURES})
        .order_by("harness", "cluster_user")
    )


def _main(rows: Iterable[Any]) -> dict[int, str]:
    main: dict[int, tuple[int, str]] = {}
    for row in rows:
        user, submissions = row["cluster_user"], row["submissions_"]
        if user not in main or submissions > main[user][0]:
            main[user] = (submissions, row["harness"])
    return {user: harness for user, (_, harness) in main.items()}


@dataclass(frozen=True, slots=True)
class DayLoad:
    """One UTC day's measures by actor."""

    day: date
    submissions: Split
    core_s: Split
    gpu_s: Split


def by_day(scope: Scope, definition: Definition = Definition.JOB) -> list[DayLoad]:
    """Split each day of the period by actor, empty days included; one query. The days add up to `shares`."""
    rows = scope.attributed(definition).values("day", "who").annotate(**{f"{name}_": Sum(name) for name in MEASURES})
    sums = {(row["day"], row["who"]): row for row in rows}
    nothing = {f"{name}_": 0 for name in MEASURES}

    def split(day: date, measure: str) -> Split:
        return Split(*(sums.get((day, actor), nothing)[f"{measure}_"] for actor in Actor.values))

    return [DayLoad(day, *(split(day, measure) for measure in MEASURES)) for day in scope.period.days]

"""Loads by lab and by partition. Rows about fewer than five people stand in the rest."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from principals.models import Lab
from telemetry.engine import cells
from telemetry.models import Actor
from telemetry.selectors.loads import Loads
from telemetry.selectors.scope import Scope
from telemetry.selectors.totals import Totals, ratio

TOP = 10
_IS_AGENT = Q(actor=Actor.AGENT)
_PARTS = {"agent_": Q(actor=Actor.AGENT), "human_": Q(actor=Actor.HUMAN), "": Q()}
_SUMMED = (
    "submissions", "core_s", "gpu_s", "ended", "ended_never_started", "ended_cancelled", "ended_core_s",
    "ended_lost_core_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """What one lab or partition did. `key` is its name, "" for the rest; `members` is how many groups the row holds.

    `daily` are agents' submissions by UTC day, in the order of the period's days; empty in the rest.
    """

    key: str
    title: str
    members: int
    people: int
    agent_people: int
    agent: Totals
    human: Totals
    total: Totals
    daily: tuple[int, ...] = ()

    @property
    def share(self) -> float | None:
        """Agents' share of the submissions."""
        return ratio(self.agent.submissions, self.total.submissions)

    @property
    def unknown_share(self) -> float | None:
        """The share of the submissions that is not attributed."""
        known = self.agent.submissions + self.human.submissions
        return ratio(self.total.submissions - known, self.total.submissions)

    @property
    def agent_people_shown(self) -> int | None:
        """How many people used agents; None for one to four."""
        return self.agent_people if cells.enough(self.agent_people) else None


@dataclass(frozen=True, slots=True)
class GroupLoads:
    """Rows by agents' submissions, and what is left in one row; together they sum to the scope's totals.

    `withheld` counts the groups that are in the rest for want of five people.
    """

    rows: tuple[GroupLoad, ...]
    rest: GroupLoad | None
    withheld: int

    @property
    def all_rows(self) -> tuple[GroupLoad, ...]:
        return (*self.rows, self.rest) if self.rest else self.rows


def by_lab(scope: Scope, *, limit: int = TOP, loads: Loads | None = None) -> GroupLoads:
    """Split a scope by lab, most agent submissions first; two queries beside its loads."""
    loads = loads or Loads(scope)
    found = _sorted(_labs_of(loads))

    def people_in(groups: Sequence[GroupLoad]) -> int:
        keys = {group.key for group in groups}
        return len({load.user for load in loads.rows if str(load.lab) in keys})

    groups = _shown(scope, scope.users(), "lab_id", found, limit=limit, people_in=people_in)
    labs = {str(lab.pk): lab for lab in Lab.objects.filter(pk__in=[group.key for group in groups.rows])}
    rows = tuple(replace(group, key=labs[group.key].name, title=labs[group.key].title) for group in groups.rows)
    return GroupLoads(rows, groups.rest, groups.withheld)


def _labs_of(loads: Loads) -> Iterator[GroupLoad]:
    whole, parts = loads.totals(by=lambda load: load.lab), loads.totals(by=lambda load: (load.lab, load.actor))
    for lab, total in whole.items():
        agents, people = (parts.get((lab, actor.value), Totals()) for actor in (Actor.AGENT, Actor.HUMAN))
        yield GroupLoad(str(lab), str(lab), 1, total.people, agents.people, agents, people, total)


def by_partition(scope: Scope, *, limit: int = TOP) -> GroupLoads:
    """Split a scope by partition, most agent submissions first; at most three queries."""
    return _by(scope, "partition", limit)


def over_representation(load: GroupLoad, whole: Totals, agents: Totals) -> float | None:
    """Agents' share of a partition's submissions over their share of all (2.285 on the paper's test partition)."""
    overall = ratio(agents.submissions, whole.submissions)
    return ratio(load.share, overall) if load.share is not None and overall else None


def _by(scope: Scope, column: str, limit: int) -> GroupLoads:
    aggregates: dict[str, Any] = {
        "people": Count("cluster_user", distinct=True),
        "agent_people": Count("cluster_user", distinct=True, filter=_IS_AGENT),
    }
    for name in _SUMMED:
        aggregates |= {f"{part}{name}_": Sum(name, filter=where, default=0) for part, where in _PARTS.items()}
    found = scope.rollups().values(column).annotate(**aggregates).order_by(column)

    def people_in(loads: Sequence[GroupLoad]) -> int:
        keys = [load.key for load in loads]
        counted = scope.rollups().filter(**{f"{column}__in": keys}).aggregate(n=Count("cluster_user", distinct=True))
        return int(counted["n"])

    rows = _sorted(_load(row, str(row[column])) for row in found)
    return _shown(scope, scope.rollups(), column, rows, limit=limit, people_in=people_in)


def _sorted(loads: Iterable[GroupLoad]) -> list[GroupLoad]:
    return sorted(loads, key=lambda load: (-load.agent.submissions, load.key))


def _shown(
    scope: Scope, source: QuerySet[Any], column: str, rows: Sequence[GroupLoad], *, limit: int,
    people_in: Callable[[Sequence[GroupLoad]], int],
) -> GroupLoads:  # fmt: skip
    shown, rest = cells.withhold(rows, limit=limit, people_in=people_in)
    daily = _daily(source, column, [load.key for load in shown])
    return GroupLoads(
        rows=tuple(
            replace(load, daily=tuple(daily[load.key].get(day, 0) for day in scope.period.days)) for load in shown
        ),
        rest=_add_up(rest) if rest else None,
        withheld=sum(not cells.enough(load.people) for load in rest),
    )


def _load(row: dict[str, Any], key: str) -> GroupLoad:
    parts = {part: Totals(**{name: row[f"{part}{name}_"] for name in _SUMMED}) for part in _PARTS}
    return GroupLoad(
        key=key, title=key or "No name", members=1, people=row["people"], agent_people=row["agent_people"],
        agent=parts["agent_"], human=parts["human_"], total=parts[""],
    )  # fmt: skip


def _add_up(loads: Sequence[GroupLoad]) -> GroupLoad:
    """Add rows up. People may be in several of them, so the rest tells no number of people."""

    def total(part: str) -> Totals:
        return Totals(**{name: sum(getattr(getattr(load, part), name) for load in loads) for name in _SUMMED})

    return GroupLoad("", "All others", len(loads), 0, 0, total("agent"), total("human"), total("total"))


def _daily(source: QuerySet[Any], column: str, keys: list[str]) -> dict[str, dict[date, int]]:
    rows = (
        source.filter(_IS_AGENT, **{f"{column}__in": keys})
        .values_list(column, "day")
        .annotate(submitted=Sum("submissions"))
    )
    daily: dict[str, dict[date, int]] = defaultdict(dict)
    for key, day, submitted in rows:
        daily[str(key)][day] = submitted
    return daily

"""Sums over a scope, whole and by actor."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from django.db.models import Count, Max, Q, Sum

from telemetry.selectors.scope import Scope

HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Totals:
    """What was done: seconds are exact integers; `…_hours` are seconds / 3600.

    `users` and `labs` are those of jobs that ended after having started, `people` everybody in the scope.
    """

    people: int = 0
    users: int = 0
    labs: int = 0
    submissions: int = 0
    ended: int = 0
    ended_never_started: int = 0
    ended_cancelled: int = 0
    ended_failed: int = 0
    ended_timeout: int = 0
    wall_s: int = 0
    core_s: int = 0
    node_s: int = 0
    gpu_s: int = 0
    ended_wall_s: int = 0
    ended_node_s: int = 0
    ended_wait_node_s: int = 0
    ended_core_s: int = 0
    ended_lost_core_s: int = 0
    wait_s: int = 0
    waits: int = 0
    max_cores: int = 0

    @property
    def core_hours(self) -> float:
        return self.core_s / HOUR_S

    @property
    def gpu_hours(self) -> float:
        return self.gpu_s / HOUR_S

    @property
    def node_hours(self) -> float:
        return self.node_s / HOUR_S

    @property
    def wall_hours(self) -> float:
        return self.wall_s / HOUR_S

    @property
    def wait_hours(self) -> float:
        return self.wait_s / HOUR_S

    @property
    def over(self) -> int:
        """Jobs that ended, whether or not they had started."""
        return self.ended + self.ended_never_started

    @property
    def cancelled_share(self) -> float | None:
        """Of the jobs that ended, those that were cancelled; None without any."""
        return ratio(self.ended_cancelled, self.over)

    @property
    def failed_share(self) -> float | None:
        """Of the jobs that ended, those that failed (time limits apart)."""
        return ratio(self.ended_failed, self.over)

    @property
    def lost_share(self) -> float | None:
        """Of the core time of ended jobs, that of jobs which failed, timed out or were cancelled."""
        return ratio(self.ended_lost_core_s, self.ended_core_s)

    @property
    def mean_wait_s(self) -> float | None:
        """Mean of start − submit over jobs that ended after having started."""
        return ratio(self.wait_s, self.waits)

    @property
    def expansion_factor(self) -> float | None:
        """Sum of (wall + wait) × nodes over sum of wall × nodes, of ended jobs (Open XDMoD's definition)."""
        return ratio(self.ended_node_s + self.ended_wait_node_s, self.ended_node_s)


def ratio(part: float, whole: float) -> float | None:
    """Divide; None where there is nothing to divide by."""
    return part / whole if whole else None


COUNTED = {
    "people": Count("cluster_user", distinct=True),
    "users": Count("cluster_user", distinct=True, filter=Q(ended__gt=0)),
    "labs": Count("lab", distinct=True, filter=Q(ended__gt=0)),
}
SUMMED = tuple(field.name for field in fields(Totals) if field.name not in COUNTED)
SUMS: dict[str, Any] = {name: (Max if name == "max_cores" else Sum)(name, default=0) for name in SUMMED}
# Counts first: an aggregate named like a column must not stand in for it in a later filter.
AGGREGATES = {f"{name}_": expression for name, expression in (COUNTED | SUMS).items()}


def read(row: Mapping[str, Any]) -> Totals:
    """Read totals from a row of `AGGREGATES`."""
    return Totals(**{name.removesuffix("_"): row[name] for name in AGGREGATES})


def totals(scope: Scope) -> Totals:
    """Sum a scope up; one query."""
    return read(scope.rollups().aggregate(**AGGREGATES))


def daily_totals(scope: Scope) -> dict[date, Totals]:
    """Sum a scope up by UTC day; days without anything are there, empty. One query.

    Sums add up to `totals`; people, users, labs and the largest job do not.
    """
    rows = {row["day"]: read(row) for row in scope.rollups().values("day").annotate(**AGGREGATES)}
    return {day: rows.get(day, Totals()) for day in scope.period.days}

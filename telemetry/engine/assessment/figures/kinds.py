"""What a figure of an assessment is: as one of a report, without what opens the rows behind it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import polars as pl

from telemetry.engine.assessment.assessor import Assessment
from telemetry.engine.report_content import Column, Figure, Number, Row
from telemetry.engine.usage import HOUR_S

Unit: TypeAlias = Literal[
    "people", "accounts", "jobs", "submissions", "core-hours", "node-hours", "GPU-hours", "share", "s", "ratio", "keys",
    "records",
]  # fmt: skip
LABELS: Final = {True: ("agent", "Agents"), False: ("unknown", "Not attributed")}
SUBMITTED: Final = "jobs submitted, each array task counted"
ENDED: Final = "jobs that ended, whether or not they had started"
RAN: Final = "jobs that ended after having started"
USED: Final = "jobs that started, running ones as far as they were told of"


class Reading:
    """An assessment with its sums added up by class, as figures ask for them."""

    def __init__(self, found: Assessment) -> None:
        self.found = found
        self.users = found.sums.users.table()
        sums = [pl.col(name).sum() for name in self.users.columns if name not in ("user", "agent")]
        by_class = self.users.group_by("agent").agg(sums)
        self._sums = {bool(row.pop("agent")): row for row in by_class.iter_rows(named=True)}

    @property
    def classes(self) -> tuple[bool, ...]:
        """Agents' (True), where anything is known of agents, and all others' (False)."""
        return (False,) if self.found.known.is_nothing else (True, False)

    def sum(self, name: str, agent: bool | None = None) -> int:
        """Return a sum of one class, or of all."""
        if agent is None:
            return sum(int(row[name]) for row in self._sums.values())
        return int(self._sums[agent][name]) if agent in self._sums else 0

    def unknown(self, name: str) -> float | None:
        """Return the share of a sum that is not attributed to an agent."""
        return ratio(self.sum(name, agent=False), self.sum(name))

    def people(self, agent: bool | None = None) -> int:
        """Count login names. One with any job of an agent is an agent's, and no other's."""
        everybody = self.users["user"].n_unique()
        with_agents = self.users.filter("agent")["user"].n_unique()
        return everybody if agent is None else with_agents if agent else everybody - with_agents

    def absent(self) -> list[str]:
        """Return the login names that were said to run agents and have no job here: perhaps they are mistyped."""
        return sorted(self.found.known.users.difference(self.users["user"]))


def compare(
    reading: Reading, figure: Figure, title: str, of: Callable[[bool | None], Number | None], whole: str
) -> Figure:
    """Give a figure one number of each class beside that of all, each with the jobs it is of: the sum `whole`."""
    rows = [Row(*LABELS[agent], (of(agent), reading.sum(whole, agent))) for agent in reading.classes]
    if len(rows) > 1:
        rows.append(Row("all", "All", (of(None), reading.sum(whole))))
    columns = (Column("value", title, figure.unit), Column("jobs", "Jobs", "jobs"))
    return replace(
        figure, value=of(None), unknown_share=reading.unknown(whole), columns=columns, rows=tuple(rows)
    )  # fmt: skip


def ratio(part: float, whole: float) -> float | None:
    """Divide; None where there is nothing to divide by."""
    return part / whole if whole else None


def share_of(reading: Reading, part: str, whole: str) -> Callable[[bool | None], Number | None]:
    """Return what divides one sum of a class by another."""
    return lambda agent: ratio(reading.sum(part, agent), reading.sum(whole, agent))


def hours(seconds: float) -> float:
    """Return seconds in hours."""
    return seconds / HOUR_S


def class_columns(unit: Unit, classes: Sequence[bool]) -> tuple[Column, ...]:
    """Return a column for each class."""
    return tuple(Column(*LABELS[agent], unit, adds_up=unit != "share") for agent in classes)

"""Figures of what harnesses tell of themselves: what an agent user costs, and how often people decline.

Not of the published measurement: nobody is in them but whoever agreed, or did not decline where the site said yes. Of
few people the bounds of a median are the least and the greatest, so somebody's own: they are left out.
"""

from collections.abc import Callable, Collection
from statistics import median
from typing import Final

from telemetry.engine.cells import enough
from telemetry.figures.commands import HIDDEN
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit
from telemetry.figures.load import LABELS, harness_row
from telemetry.figures.readings import Readings
from telemetry.models import Actor
from telemetry.selectors import ratio
from telemetry.selectors.harness import HarnessUse

NOT_TOLD: Final = (
    "Not measured: no harness told of itself in this period, which the site and its people have to agree to."
)
_BY: Final = "Rows of harnesses part the first one. The share that is not known is of people whose agents told nothing."

Values = tuple[Number | None, ...]


def _measured(
    readings: Readings,
    columns: tuple[Column, ...],
    told: Callable[[HarnessUse], bool],
    values: Callable[[Collection[HarnessUse]], Values],
) -> Measured:
    """One row for agents and for each harness, of the people of whom anything was told; empty where they are few."""
    found = readings.telling
    if not any(map(told, found.by_user.values())):
        return Measured(None, columns, note=NOT_TOLD)
    groups = [(Actor.AGENT.value, LABELS[Actor.AGENT], found.by_user)]
    groups += [(*harness_row(name), found.by_harness[name]) for name in sorted(found.by_harness)]
    rows, hidden = [], False
    for key, label, by_user in groups:
        uses = [use for use in by_user.values() if told(use)]
        shown = enough(len(uses))
        hidden |= not shown
        if uses:
            rows.append(Row(key, label, (*values(uses), len(uses)) if shown else (None,) * len(columns)))
    return Measured(rows[0].values[0], columns, tuple(rows), found.unknown_share, note=HIDDEN if hidden else "")


def _cost(readings: Readings) -> Measured:
    columns = (Column("value", "Median", Unit.DOLLARS), Column("people", "People", Unit.PEOPLE))
    return _measured(readings, columns, lambda use: use.cost > 0, lambda uses: (median(use.cost for use in uses),))


def _declined(readings: Readings) -> Measured:
    columns = (
        Column("value", "Of all", Unit.SHARE), Column("median", "Median of people", Unit.SHARE),
        Column("people", "People", Unit.PEOPLE),
    )  # fmt: skip

    def values(uses: Collection[HarnessUse]) -> Values:
        rejected, accepted = sum(use.rejected for use in uses), sum(use.accepted for use in uses)
        return (ratio(rejected, rejected + accepted), median(use.rejected_share or 0.0 for use in uses))

    return _measured(readings, columns, lambda use: use.rejected_share is not None, values)


LIMIT = "Of agents alone whose site and person let the harness tell; what a harness counts of itself nobody checks."
FIGURES = [
    Figure(
        "harness-cost", Section.LOAD, "Cost of an agent user, told by the harness",
        "What the harnesses of a person’s agents estimate that their models cost, at list prices, over the period: the "
        f"median over people. {_BY}",
        "people whose agents’ harness told a cost", Unit.DOLLARS, _cost, facility_only=True,
    ),
    Figure(
        "decisions-declined", Section.SECURITY, "Actions of agents that people declined",
        "Of what an agent wanted to do and a person was asked for, the share that was declined, over all decisions, "
        f"and the median of people’s own shares. What settings or hooks decide is no decision here. {_BY}",
        "people whose agents’ harness told of a decision", Unit.SHARE, _declined, facility_only=True,
    ),
]  # fmt: skip

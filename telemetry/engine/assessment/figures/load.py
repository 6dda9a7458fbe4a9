"""How much was done, and how much of it by whom is known to be an agent (paper §III-A, Figure 2)."""

from datetime import date
from typing import Final

import polars as pl

from telemetry.engine.assessment.figures.kinds import (
    LABELS,
    SUBMITTED,
    USED,
    Reading,
    Unit,
    class_columns,
    hours,
    ratio,
)
from telemetry.engine.report_content import Column, Figure, Number, Row

_EPOCH: Final = date(1970, 1, 1).toordinal()
_PEOPLE: Final = "login names with a job"
# figure: (title, unit, population, the sum it is of)
_MEASURES: Final[dict[str, tuple[str, Unit, str, str]]] = {
    "people": ("People", "people", _PEOPLE, ""),
    "submissions": ("Submissions", "submissions", SUBMITTED, "submissions"),
    "core-hours": ("Core-hours", "core-hours", USED, "core_s"),
    "GPU-hours": ("GPU-hours", "GPU-hours", USED, "gpu_s"),
}
_BY: Final = "A job is an agent’s by its login name or by a marker; what is not known of is not attributed."
DEFINITION: Final = (
    "A job is an agent’s when its login name is in the list of agents’ users, or when it carries a marker; who has one "
    "such job counts among agents’ people. Whoever else used an agent unseen is in what is not attributed."
)


def figures(reading: Reading) -> list[Figure]:
    """Return the totals, the shares and the days."""
    return [*_totals(reading), *(_share(reading, key) for key in _MEASURES), _days(reading)]


def _amount(reading: Reading, key: str, agent: bool | None = None) -> Number:
    _, _, _, name = _MEASURES[key]
    if not name:
        return reading.people(agent)
    amount = reading.sum(name, agent)
    return amount if name == "submissions" else hours(amount)


def _totals(reading: Reading) -> list[Figure]:
    accounts = reading.found.sums.accounts.table()
    named = accounts["account"].n_unique()
    unseen = named - accounts.filter("agent")["account"].n_unique()
    whole = [
        Figure(f"total-{key}", title, f"All {unit}, whoever’s.", population, unit, _amount(reading, key),
               ratio(_amount(reading, key, agent=False), _amount(reading, key)))
        for key, (title, unit, population, _) in _MEASURES.items()
    ]  # fmt: skip
    node_hours = Figure("total-node-hours", "Node-hours", "All node-hours, whoever’s.", USED, "node-hours",
                        hours(reading.sum("node_s")), reading.unknown("node_s"))  # fmt: skip
    named_by = Figure("total-accounts", "Accounts", "Slurm accounts named by a job; not attributed where no agent’s "
                      "job names it.", SUBMITTED, "accounts", named, ratio(unseen, named))  # fmt: skip
    return [whole[0], named_by, *whole[1:3], node_hours, *whole[3:]]


def _share(reading: Reading, key: str) -> Figure:
    title, unit, population, _ = _MEASURES[key]
    whole = _amount(reading, key)
    amounts = {agent: _amount(reading, key, agent) for agent in reading.classes}
    rows = [Row(*LABELS[agent], (amount, ratio(amount, whole))) for agent, amount in amounts.items()]
    return Figure(
        f"share-{key}", f"Agents’ share of {title if unit == 'GPU-hours' else title.lower()}", _BY, population,
        "share", ratio(amounts[True], whole) if True in amounts else None, ratio(amounts[False], whole),
        columns=(Column("amount", title, unit, adds_up=True), Column("share", "Share", "share")),
        rows=tuple(rows) if True in amounts else (),
    )  # fmt: skip


def _days(reading: Reading) -> Figure:
    table = reading.found.sums.days.table()
    counts = {(int(day), bool(agent)): int(count) for day, agent, count in table.iter_rows()}
    first, last = (int(edge) for edge in table.select(pl.col("day").min(), pl.col("day").max().alias("last")).row(0))
    # A stray record years away must not make a row of each day between.
    days = range(first, last + 1) if last - first < 1000 else sorted({day for day, _ in counts})
    rows = []
    for day in days:
        name = date.fromordinal(_EPOCH + day).isoformat()
        rows.append(Row(name, name, tuple(counts.get((day, agent), 0) for agent in reading.classes)))
    busiest = max(sum(counts.get((day, agent), 0) for agent in (True, False)) for day in days)
    return Figure(
        "daily", "Submissions by day", "Days are UTC days. The headline is the busiest day.", SUBMITTED, "submissions",
        busiest, reading.unknown("submissions"), columns=class_columns("submissions", reading.classes),
        rows=tuple(rows),
    )  # fmt: skip

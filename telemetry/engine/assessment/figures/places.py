"""Where jobs go: the partitions, and those that are there for tests (paper §IV-A)."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import polars as pl

from telemetry.engine.assessment.figures.kinds import SUBMITTED, Reading, compare, ratio
from telemetry.engine.cells import MIN_PEOPLE, withhold
from telemetry.engine.plain import plain
from telemetry.engine.redaction import is_secretless
from telemetry.engine.report_content import Column, Figure, Row
from telemetry.engine.usage import HOUR_S

SHOWN: Final = 20
_TEST_NAME: Final = re.compile(r"(?:^|[^a-z])(?:test|testing|tests|debug|dbg|devel|development|dev|devq)(?:$|[^a-z])")
_SHORT_S: Final = HOUR_S
_ENOUGH: Final = 20  # jobs with a time limit, before it says what a partition is for


class Place(NamedTuple):
    """One partition: submissions of all and of agents, people, and why it is one for tests ("" where it is none)."""

    name: str
    submissions: int
    by_agents: int
    people: int
    test: str


def figures(reading: Reading) -> list[Figure]:
    """Return test partitions' share and the table of partitions."""
    places = places_of(reading)
    return [_test(reading, places), _table(reading, places)]


def places_of(reading: Reading) -> list[Place]:
    """Return the partitions, the busiest first."""
    table = reading.found.sums.partitions.table()
    rows = (
        table.group_by("partition").agg(
            pl.col("submissions").sum(), pl.col("submissions").filter("agent").sum().alias("by_agents"),
            pl.col("user").n_unique().alias("people"), pl.col("longest_s").max(), pl.col("limits").sum(),
        )
    )  # fmt: skip
    found = [
        Place(row["partition"], row["submissions"], row["by_agents"], row["people"], _why_test(row))
        for row in rows.iter_rows(named=True)
    ]
    return sorted(found, key=lambda place: (-place.submissions, place.name))


def _why_test(row: dict[str, Any]) -> str:
    if _TEST_NAME.search(row["partition"].lower()):
        return "by its name"
    if row["limits"] >= _ENOUGH and row["longest_s"] <= _SHORT_S:
        return "no job asks for more than an hour"
    return ""


def _test(reading: Reading, places: list[Place]) -> Figure:
    tests = [place.name for place in places if place.test]
    table = reading.found.sums.partitions.table().filter(pl.col("partition").is_in(tests))
    sums = {agent: int(table.filter(pl.col("agent") == agent)["submissions"].sum()) for agent in (True, False)}

    def share(agent: bool | None) -> float | None:
        part = sum(sums.values()) if agent is None else sums[agent]
        return ratio(part, reading.sum("submissions", agent))

    figure = Figure(
        "test-partitions", "Submissions to test partitions",
        "Partitions whose name says test, debug or dev, or of which no job asks for more than an hour.", SUBMITTED,
        "share", note=_told(reading, places, share(True), share(None)),
    )  # fmt: skip
    return compare(reading, figure, "Share", share, "submissions")


def _told(reading: Reading, places: list[Place], agents: float | None, everybody: float | None) -> str:
    tests = [place for place in places if place.test]
    if not tests:
        return "No partition says that it is for tests."
    named = "; ".join(f"{_shown(place.name)} ({place.test})" for place in tests[:SHOWN])
    more = f" and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
    over = ratio(agents or 0, everybody or 0)
    said = f" Agents are over-represented there {over:.2f} times." if True in reading.classes and over else ""
    return f"Taken as such: {named}{more}.{said}"


def _table(reading: Reading, places: list[Place]) -> Figure:
    submissions, by_agents = reading.sum("submissions"), reading.sum("submissions", agent=True)
    shown, rest = _withhold(reading, places)
    rows = [_row(f"p{at}", _label(place), [place], submissions, by_agents) for at, place in enumerate(shown)]
    if rest:
        rows.append(_row("rest", "All others", rest, submissions, by_agents))
    columns = [Column("submissions", "Submissions", "submissions", adds_up=True),
               Column("share", "Of all", "share", adds_up=True)]  # fmt: skip
    if True in reading.classes:
        columns += [Column("agents", "Agents’ share", "share"), Column("over", "Over-represented", "ratio")]
    figure = Figure(
        "partitions", "Partitions",
        "Over-represented: agents’ share of a partition’s submissions over their share of all. The headline is the "
        "busiest partition’s share.", SUBMITTED, "share", rows[0].values[1] if rows else None,
        reading.unknown("submissions"), columns=tuple(columns),
        rows=tuple(replace(row, values=row.values[: len(columns)]) for row in rows),
    )  # fmt: skip
    return replace(figure, note=f"Rows about fewer than {MIN_PEOPLE} people are added to the rest.") if rest else figure


def _withhold(reading: Reading, places: list[Place]) -> tuple[list[Place], list[Place]]:
    """Part the partitions into those shown and the rest; a dump of a few people's own jobs holds nothing back."""
    if reading.people() < MIN_PEOPLE:
        return places[:SHOWN], places[SHOWN:]
    return withhold(places, limit=SHOWN, people_in=lambda some: _people_in(reading, some))


def _people_in(reading: Reading, places: Sequence[Place]) -> int:
    table = reading.found.sums.partitions.table()
    return table.filter(pl.col("partition").is_in([place.name for place in places]))["user"].n_unique()


def _row(key: str, label: str, places: list[Place], submissions: int, by_agents: int) -> Row:
    here = sum(place.submissions for place in places)
    agents = ratio(sum(place.by_agents for place in places), here)
    over = ratio(agents or 0, ratio(by_agents, submissions) or 0)
    return Row(key, label, (here, ratio(here, submissions), agents, over))


def _label(place: Place) -> str:
    shown = _shown(place.name)
    return f"{shown} (test)" if place.test and "test" not in shown.lower() else shown


def _shown(name: str) -> str:
    """Return a partition's name as it may be shown."""
    if not name:
        return "(none)"
    return plain(name)[:64] if is_secretless(name) else "(withheld: it looks like a secret)"

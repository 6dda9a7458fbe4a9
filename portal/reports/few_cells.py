"""What tables of a report leave empty cell by cell: a row of many people may hold a number that few of them made.

Each function takes a figure as it was measured, counts the people behind each of its cells, and empties those of few,
with others of the same line where the whole of it is known from this figure or another one (`cells.left_empty`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from principals.models import Lab
from telemetry.engine import attribution, cells
from telemetry.figures import Measured, Number, Readings
from telemetry.figures.attribution import METHODS
from telemetry.models import Actor
from telemetry.selectors.few import by_method, by_partition, gpu_people
from telemetry.selectors.rhythm import WORKING_DAYS, WORKING_HOURS

Cell = tuple[str, str]  # row, column or what a column is of
People = dict[Cell, set[int]]
_AGENT: Final = Actor.AGENT.value
_SUMS: Final = ("submissions", "core_s", "gpu_s", "ended_cancelled")
_REST: Final = ""


def left_empty(table: Mapping[Cell, AbstractSet[int]], lines: Iterable[Collection[Cell]]) -> set[Cell]:
    """As `cells.left_empty`, agents' last: theirs is what a report is read for. Tests take its place here."""
    return cells.left_empty(table, lines, last=lambda cell: cell[1] == _AGENT)


def emptied(measured: Measured, is_empty: Callable[[str, str], bool], value: Number | None) -> Measured:
    """Return a figure without some cells, by the keys of their row and column, and with that headline."""
    rows = tuple(
        replace(
            row,
            values=tuple(
                None if is_empty(row.key, column.key) else number
                for column, number in zip(measured.columns, row.values, strict=True)
            ),
        )
        for row in measured.rows
    )  # fmt: skip
    return replace(measured, rows=rows, value=value)


def _cell(measured: Measured, row: int, column: str) -> Number | None:
    place = [one.key for one in measured.columns].index(column)
    return measured.rows[row].values[place] if len(measured.rows) > row else None


def _grouped(measured: Measured, found: Iterable[tuple[str, str, int, Mapping[str, int]]]) -> Measured:
    """Empty a table of groups, labs or partitions, given as whose agents' and others' sums stand in which."""
    keys = [row.key for row in measured.rows]
    people: dict[str, People] = {name: defaultdict(set) for name in _SUMS}
    for group, actor, user, sums in found:
        row = group if group in keys else _REST
        for name in _SUMS:
            if sums[name]:
                people[name][row, actor].add(user)
    submitted = people["submissions"]
    whole = {(key, ""): set().union(*(submitted[key, actor] for actor in Actor.values)) for key in keys}
    no_whole = left_empty(whole, [list(whole)])
    columns = [[(key, actor) for key in keys] for actor in Actor.values]
    empty = left_empty(submitted, columns + [[(key, actor) for actor in Actor.values] for key in keys])
    other = {name: left_empty(people[name], [columns[0]]) for name in ("core_s", "gpu_s", "ended_cancelled")}

    def is_empty(row: str, column: str) -> bool:
        if column in ("submissions", "share", "unknown_share", "over_representation") and (row, "") in no_whole:
            return True
        if column in ("agent_submissions", "share", "over_representation"):
            return (row, _AGENT) in empty
        if column == "unknown_share":  # beside agents' it tells people's
            is_told = (row, _AGENT) not in empty
            return (row, "unknown") in empty or (is_told and (row, "human") in empty)
        name = {"agent_core_hours": "core_s", "agent_gpu_hours": "gpu_s"}.get(column, "ended_cancelled")
        return (row, _AGENT) in other[name]

    return emptied(measured, is_empty, measured.value)


def labs(readings: Readings, measured: Measured) -> Measured:
    """Empty the table of labs; the headline is of the first one."""
    names = {lab.pk: lab.name for lab in Lab.objects.filter(name__in=[row.key for row in measured.rows])}
    found = _grouped(
        measured,
        (
            (names.get(load.lab, _REST), load.actor, load.user, {name: load.sum(name) for name in _SUMS})
            for load in readings.loads.rows
        ),
    )  # fmt: skip
    return found if _cell(found, 0, "agent_submissions") is not None else replace(found, value=None)


def partitions(readings: Readings, measured: Measured) -> Measured:
    """Empty the table of partitions; the headline is the largest that is shown of a named one."""
    found = _grouped(measured, by_partition(readings.scope, _SUMS))
    factors = [row.values[-1] for row in found.rows if row.key and row.values[-1] is not None]
    return replace(found, value=max(factors, default=None) if found != measured else measured.value)


def harnesses(readings: Readings, measured: Measured) -> Measured:
    """Empty the table of harnesses, whose rows hold jobs of people who count under another one too."""
    keys = [row.key for row in measured.rows]
    names = _SUMS[:3]
    people: People = defaultdict(set)
    for load in readings.loads.rows:
        for name in names if load.actor == _AGENT else ():
            if load.sum(name):
                people[load.harness if load.harness in keys else _REST, name].add(load.user)
    empty = left_empty(people, [[(key, name) for key in keys] for name in names])
    found = emptied(measured, lambda row, column: (row, column) in empty, measured.value)
    return found if _cell(found, 0, "submissions") is not None else replace(found, value=None)


def _hours(readings: Readings) -> tuple[People, set[str]]:
    """Return whose submissions are of which hour of the week, and the actors of whom few submit in or out of hours."""
    people: People = defaultdict(set)
    sides: People = defaultdict(set)
    for (actor, place), users in readings.study.hours.items():
        day, hour = divmod(place, 24)
        people[f"{day}-{hour:02}", actor] |= users
        sides[actor, "in" if day in WORKING_DAYS and hour in WORKING_HOURS else "out"] |= users
    return people, {actor for actor, _ in left_empty(sides, [])}


def hour_of_week(readings: Readings, measured: Measured) -> Measured:
    """Empty hours by actor: each one's sum of the week is known."""
    people, few = _hours(readings)
    empty = left_empty(people, [[(row.key, actor) for row in measured.rows] for actor in Actor.values])
    value = None if _AGENT in few else measured.value
    return emptied(measured, lambda row, column: (row, column) in empty, value)


def outside_hours(readings: Readings, measured: Measured) -> Measured:
    """Empty the shares outside working hours of actors of whom few work then, or few at other times."""
    few = _hours(readings)[1]
    value = None if _AGENT in few else measured.value
    return emptied(measured, lambda row, column: column == "value" and row in few, value)


def methods(readings: Readings, measured: Measured) -> Measured:
    """Empty kinds of evidence of few; the sums of those that attribute to nobody, to people and to agents are known."""
    people = {(method, ""): users for method, users in by_method(readings.scope).items()}
    nobody = [(method, "") for method in METHODS if method in attribution.UNATTRIBUTED]
    person = [(attribution.METHOD_INTERACTIVE, "")]
    agents = [(method, "") for method in METHODS if (method, "") not in (*nobody, *person)]
    empty = left_empty(people, [nobody, person, agents, [*nobody, *person, *agents]])
    found = emptied(measured, lambda row, _: (row, "") in empty, measured.value)
    doubted = {(method, "") for method, one in METHODS.items() if one.doubt}
    return replace(found, note="") if doubted & empty else found


def _quadrants(readings: Readings) -> set[Cell]:
    """Return the empty cells of quadrant and actor, "" for all of both."""
    people: People = defaultdict(set)
    for actor, quadrant, _, user in gpu_people(readings.scope):
        for cell in {(quadrant, actor), (quadrant, ""), ("measured" if quadrant else "", actor)}:
            people[cell].add(user)
    kinds = sorted({quadrant for quadrant, _ in people} - {"measured"})
    lines = [[(kind, actor) for kind in kinds] for actor in (*Actor.values, "")]
    lines += [[(kind, actor) for actor in Actor.values] for kind in (*kinds, "measured")]
    return left_empty(people, lines)


def gpu_utilisation(readings: Readings, measured: Measured) -> Measured:
    """Empty jobs by use and actor; the headline is of all."""
    empty = _quadrants(readings)

    def is_empty(row: str, column: str) -> bool:
        return ("" if row == "unmeasured" else row, "" if column in ("share", "jobs") else column) in empty

    value = None if any(is_empty(row.key, "share") for row in measured.rows) else measured.value
    return emptied(measured, is_empty, value)


def gpu_by_actor(readings: Readings, measured: Measured) -> Measured:
    """Empty the same cells, shares of each one's own here."""
    empty = _quadrants(readings)

    def is_empty(row: str, column: str) -> bool:
        kind = {"jobs": "measured", "unmeasured": ""}.get(column, column)
        return (kind, row) in empty or (column != "unmeasured" and ("measured", row) in empty)

    return emptied(measured, is_empty, None if is_empty(_AGENT, "both") else measured.value)


def gpu_stranded(readings: Readings, measured: Measured) -> Measured:
    """Empty the hours of actors of whom few were measured."""
    empty = _quadrants(readings)
    return emptied(measured, lambda row, _: ("measured", row) in empty, measured.value)


def gpu_fits(readings: Readings, measured: Measured) -> Measured:
    """Empty what would have done for the jobs of few."""
    people: People = defaultdict(set)
    for _, _, fit, user in gpu_people(readings.scope):
        if fit:
            people[fit, ""].add(user)
    empty = left_empty(people, [list(people)])
    value = None if empty & {("whole", ""), ("unknown", "")} else measured.value
    return emptied(measured, lambda row, _: (row, "") in empty, value)


TABLES: Final[dict[Hashable, Callable[[Readings, Measured], Measured]]] = {
    "labs": labs, "partitions": partitions, "harnesses": harnesses, "hour-of-week": hour_of_week,
    "outside-working-hours": outside_hours, "attribution-methods": methods, "gpu-utilisation": gpu_utilisation,
    "gpu-utilisation-by-actor": gpu_by_actor, "gpu-stranded": gpu_stranded, "gpu-would-fit": gpu_fits,
}  # fmt: skip

"""What a report leaves empty of Slurm's accounting: numbers that fewer than five people made (DESIGN, "Privacy").

Pages show staff and a PI what their Slurm keeps anyway. A report is read by everybody, so it holds no such number of
agents, of people or of the rest, nor another one where subtraction from the whole would tell it.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from functools import cache
from typing import Final, TypeVar

from django.db.models import Sum

from telemetry.engine.cells import MIN_PEOPLE, Group, withheld
from telemetry.figures import Figure, Measured, Number, Readings, measure_figure
from telemetry.models import Actor
from telemetry.selectors import Definition

NOTE: Final = f"What fewer than {MIN_PEOPLE} people made is left empty, and what it could be had from by subtraction."
DAYS: Final = "daily"
_SUMS: Final = ("submissions", "core_s", "gpu_s")
_SHARES: Final = {"people": "", "submissions": "submissions", "core-hours": "core_s", "GPU-hours": "gpu_s"}
# Figures that part accounting by actor: under which definition, and what somebody has of who is in them.
PARTED: Final = {
    **{f"share-{title}-{by.value}": (by, name) for by in Definition for title, name in _SHARES.items()},
    **dict.fromkeys(
        ("harnesses", "labs", DAYS, "outside-working-hours", "hour-of-week", "partitions", "attribution-methods",
         "acceptance-labelled", "where-agents-submit", "login-node-bias"),
        (Definition.JOB, "submissions"),
    ),
    **dict.fromkeys(
        ("runtime-one-minute", "runtime-five-minutes", "runtime-median", "runtime-distribution", "cancelled", "failed",
         "timed-out", "core-time-lost", "mean-wait", "median-wait", "cancel-gap", "resubmitted", "repeated-failures"),
        (Definition.JOB, "ended"),
    ),
    # They leave out what is of few by themselves, but not what the whole, which other figures have, would tell.
    **dict.fromkeys(
        ("queries-per-job", "queries-high-volume", "acceptance-polls"), (Definition.ACCOUNT, "submissions")
    ),
    **dict.fromkeys(
        ("gpu-utilisation", "gpu-utilisation-by-actor", "gpu-stranded"), (Definition.JOB, "gpu_s")
    ),
}  # fmt: skip
# Of these the headline is of the whole, whoever is left empty.
_OF_ALL: Final = {"gpu-utilisation", "gpu-stranded"}
# Of these every row is agents', or together they tell of all.
_ROWS_OF_AGENTS: Final = {"harnesses", "where-agents-submit", "login-node-bias"}
_ROWS_OF_ANY: Final = {"attribution-methods"}
_COLUMNS_OF_AGENTS: Final = {"labs": ("share", "over_representation"), "partitions": ("share", "over_representation")}
K = TypeVar("K", bound=Hashable)


class Few:
    """The figures of one report, without what it leaves empty."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._hidden = cache(self._find)

    def measure(self, figure: Figure) -> Measured | None:
        """Measure a figure as a report may say it; None where it is not measured yet."""
        measured = measure_figure(figure, self._readings)
        return measured and self._withhold(figure.key, measured)

    def _withhold(self, key: str, measured: Measured) -> Measured:
        if key not in PARTED:
            return measured
        hidden = self._hidden(*PARTED[key])
        found = _without(key, measured, hidden) if hidden else measured
        found = self._without_days(found) if key == DAYS else found
        return found if found == measured else replace(found, note=f"{found.note} {NOTE}".strip())

    def _find(self, by: Definition, name: str) -> frozenset[str]:
        loads = self._readings.loads
        who = loads.who(by)
        people = _people_by((who(load), load.user) for load in loads.rows if not name or load.sum(name))
        if not name:  # people are counted once: agents' first, then people, then the rest
            taken: set[int] = set()
            for actor in Actor.values:
                people[actor], taken = people[actor] - taken, taken | people[actor]
        groups = [Group(actor, some) for actor, some in people.items() if some]
        # Agents' last of all: theirs is what a report is read for.
        return frozenset(withheld(sorted(groups, key=lambda one: (one.key != Actor.AGENT, -one.people))))

    def _without_days(self, measured: Measured) -> Measured:
        """Leave days empty, each by itself and so that the sum of the others does not tell it."""
        rows = self._readings.scope.users().order_by().values_list("day", "actor", "cluster_user")
        found = [(str(day), *rest) for day, *rest in rows.annotate(**{f"{name}_": Sum(name) for name in _SUMS})]
        empty: dict[str, set[str]] = {}
        for place, name in enumerate(_SUMS):
            for actor in Actor.values:
                people = _people_by((row[0], row[2]) for row in found if row[1] == actor and row[3 + place])
                groups = sorted((Group(day, some) for day, some in people.items()), key=lambda one: -one.people)
                empty[f"{actor}_{name}"] = withheld(groups)
        return _kept(measured, lambda row, column: row not in empty[column])


def _without(key: str, measured: Measured, hidden: frozenset[str]) -> Measured:
    def keep(row: str, column: str) -> bool:
        return not {_actor_of_row(key, row), _actor_of_column(key, column)} & (hidden | {"any"})

    value = measured.value if key in _OF_ALL or Actor.AGENT not in hidden else None
    unknown = measured.unknown_share if Actor.UNKNOWN not in hidden else None
    if key in _ROWS_OF_ANY and unknown is None:
        value = None
    return replace(_kept(measured, keep), value=value, unknown_share=unknown)


def _kept(measured: Measured, keep: Callable[[str, str], bool]) -> Measured:
    def values(key: str, numbers: Iterable[Number | None]) -> tuple[Number | None, ...]:
        return tuple(
            number if keep(key, column.key) else None for column, number in zip(measured.columns, numbers, strict=True)
        )

    return replace(measured, rows=tuple(replace(row, values=values(row.key, row.values)) for row in measured.rows))


def _actor_of_row(figure: str, key: str) -> str:
    if figure in _ROWS_OF_ANY:
        return "any"
    if figure in _ROWS_OF_AGENTS or key.startswith("harness-"):
        return Actor.AGENT.value
    return next((actor for actor in Actor.values if actor in (key, key.split("-")[0], key.split("-")[-1])), "")


def _actor_of_column(figure: str, key: str) -> str:
    if key in _COLUMNS_OF_AGENTS.get(figure, ()):
        return Actor.AGENT.value
    return next((actor for actor in Actor.values if key == actor or key.startswith(f"{actor}_")), "")


def _people_by(pairs: Iterable[tuple[K, int]]) -> dict[K, set[int]]:
    found: dict[K, set[int]] = defaultdict(set)
    for key, user in pairs:
        found[key].add(user)
    return found

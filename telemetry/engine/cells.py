"""Small cells: a row about fewer than five people is never shown by itself (DESIGN, "Privacy").

Such rows are added up in one rest, so that the rows of a table still sum to its total. Were the rest itself about fewer
than five people, its sum could be had by subtraction: then the smallest row that may be shown goes into it too.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, TypeVar

MIN_PEOPLE = 5
LEFT_OUT = f"What is of fewer than {MIN_PEOPLE} people is left out."


class Cell(Protocol):
    """A row with the number of people it is about."""

    @property
    def people(self) -> int: ...


C = TypeVar("C", bound=Cell)
K = TypeVar("K", bound=Hashable)


def withhold(rows: Sequence[C], *, limit: int, people_in: Callable[[Sequence[C]], int]) -> tuple[list[C], list[C]]:
    """Part rows, given in order of weight, into those shown (at most `limit`) and those that go into the rest.

    `people_in` counts the people behind several rows, each once. Either list may be empty.
    """
    shown = [row for row in rows if row.people >= MIN_PEOPLE][:limit]
    rest = [row for row in rows if row not in shown]
    if rest and shown and people_in(rest) < MIN_PEOPLE:
        rest.insert(0, shown.pop())
    return shown, rest


@dataclass(frozen=True, slots=True)
class Group:
    """A row by its key, with the people it is about, who may be in other rows too."""

    key: str
    who: AbstractSet[int | str]

    @property
    def people(self) -> int:
        return len(self.who)


def withheld(groups: Sequence[Group]) -> set[str]:
    """Return which rows, given in order of weight, go into the rest: by their keys."""
    _, rest = withhold(groups, limit=len(groups), people_in=lambda some: len(set().union(*(one.who for one in some))))
    return {one.key for one in rest}


def enough(people: int) -> bool:
    """Say whether a cell about that many people may be shown; an empty one may."""
    return people == 0 or people >= MIN_PEOPLE


def left_empty(
    table: Mapping[K, AbstractSet[int]],
    lines: Iterable[Collection[K]],
    *,
    last: Callable[[K], bool] = lambda key: False,
) -> set[K]:
    """Return which cells of a table, each with the people behind it, are left empty: those of few, and more of them.

    The sum of each of `lines` is known: of none of them is a single cell empty, nor cells of fewer than five people
    together, unless there is no other. The cell of fewest people goes first, those that are to go `last` behind them.
    """
    empty = {key for key, who in table.items() if not enough(len(who))}
    filled = [[key for key in line if table.get(key)] for line in lines]
    changed = True
    while changed:
        changed = False
        for line in filled:
            gone, left = [key for key in line if key in empty], [key for key in line if key not in empty]
            if gone and left and (len(gone) == 1 or len(set().union(*(table[key] for key in gone))) < MIN_PEOPLE):
                empty.add(min(left, key=lambda key: (last(key), len(table[key]))))
                changed = True
    return empty

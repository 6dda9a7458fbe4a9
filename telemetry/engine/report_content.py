"""The form of a report's content, a period's and an assessment's: figures by name, plain enough for JSON."""

from dataclasses import dataclass
from typing import TypeAlias

Number: TypeAlias = int | float


@dataclass(frozen=True, slots=True)
class Column:
    """One number of every row. `adds_up` where the rows sum to the figure's whole."""

    key: str
    title: str
    unit: str
    adds_up: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line behind a figure; `url` is empty where nothing shows its jobs."""

    key: str
    label: str
    values: tuple[Number | None, ...]
    url: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure. `needs` says what it would take, where it is not measured.

    `limit` is what it cannot tell. `criterion` is what the facility agreed to, in words; `is_met` whether that holds,
    None where that is not known.
    """

    key: str
    title: str
    definition: str
    population: str
    unit: str
    value: Number | None = None
    unknown_share: float | None = None
    note: str = ""
    needs: str = ""
    url: str = ""
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    limit: str = ""
    criterion: str = ""
    is_met: bool | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """Some figures under one title."""

    title: str
    figures: tuple[Figure, ...]

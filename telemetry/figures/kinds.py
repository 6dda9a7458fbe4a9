"""What a figure is, what it says when it is measured, and the rows behind it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from telemetry.engine.report_content import Column, Number
from telemetry.selectors import Scope

if TYPE_CHECKING:
    from telemetry.figures.readings import Readings

__all__ = ["Column", "Figure", "Measured", "Number", "Row", "Section", "Unit", "drill_query"]


class Unit(StrEnum):
    """What a number counts; shares are 0 to 1."""

    PEOPLE = "people"
    JOBS = "jobs"
    SUBMISSIONS = "submissions"
    CORE_HOURS = "core-hours"
    GPU_HOURS = "GPU-hours"
    SHARE = "share"
    SECONDS = "s"
    RATIO = "ratio"
    CALLS = "calls"
    KEYS = "keys"
    SESSIONS = "sessions"
    DOLLARS = "US$"
    FINDINGS = "findings"
    INCIDENTS = "incidents"


class Section(StrEnum):
    """The parts of a report, in its order; the paper's sections they answer to."""

    LOAD = "Agents on the facility"
    RHYTHM = "When agents work and how long their jobs run"
    SCHEDULING = "Trials, outcomes and the scheduler"
    GPUS = "What jobs use of their GPUs"
    STORAGE = "Files and sessions"
    MEMORY = "What is learned and what is repeated"
    SECURITY = "Unsafe actions, fetched content and secrets"
    ACCEPTANCE = "Acceptance"


@dataclass(frozen=True, slots=True)
class Row:
    """One line behind a figure; `query` are the filters of the job list that show its jobs, None where none can."""

    key: str
    label: str
    values: tuple[Number | None, ...]
    query: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure measured over one scope. `value` is the headline, None where there is nothing to measure.

    `needs` says what it would take, where what it is made of was never told. `criterion` is what the facility agreed
    to, in words, and `is_met` whether that holds, which is told of a number too that is withheld; None: not known.
    """

    value: Number | None
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    unknown_share: float | None = None
    note: str = ""
    needs: str = ""
    criterion: str = ""
    is_met: bool | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure. Without `measure` it is not measured yet, and `needs` says what for.

    `limit` says what it cannot tell. `link` gives the address of the rows behind it where they are not jobs.
    """

    key: str
    section: Section
    title: str
    definition: str
    population: str
    unit: Unit
    measure: "Callable[[Readings], Measured] | None" = None
    needs: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    facility_only: bool = False
    limit: str = ""
    link: Callable[[Scope], str] | None = None


def drill_query(figure: Figure, scope: Scope, row: Row | None = None) -> str:
    """Return the query string of the job list that shows the jobs behind a figure or one of its rows; "" if none."""
    if row is not None and row.query is None:
        return ""
    return urlencode(scope.query | dict(figure.query) | dict(row.query or {} if row else {}))

"""The agent-load report of a period: an immutable structure of named figures, and its rows as a flat table."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings

from portal.reports import changes
from portal.reports.few import Few
from portal.reports.figures import FIGURES
from telemetry import figures
from telemetry.engine import report_content
from telemetry.figures import Figure, Measured, Readings, Section
from telemetry.selectors import MIN_PEOPLE, Definition, Scope

SCHEMA = 2  # 1 named a `month`, and knew of no change since the period before
# The list of jobs that every figure opens (`telemetry.figures.drill_query`).
JOBS = "/jobs/?"
LIMITS = (
    "Agent users and others are different people; not every difference is caused by agents.",
    "Agents and people share accounts: attribution is inferred, and what is not attributed is always shown.",
    "The shares at the top are by account. The Overview counts by job unless asked: lower, where people with agents "
    "also work by hand.",
    "Days and months are UTC; hours of the week are the facility’s.",
    f"Rows about fewer than {MIN_PEOPLE} people are not published by themselves, nor what fewer submitted or ran.",
)


@dataclass(frozen=True, slots=True)
class Content:
    """A whole report. Equal data give an equal content, so that its digest says whether anything changed."""

    schema: int
    title: str
    facility: str
    zone: str
    cluster: str
    is_demo: bool
    period: str
    first: str
    last: str
    definitions: dict[str, str]
    limits: tuple[str, ...]
    sections: tuple[report_content.Section, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the content as plain JSON values, floats to the last digit."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found


def build(scope: Scope) -> Content:
    """Measure every figure over a period and put the report together. The rollups should be up to date."""
    readings = Readings(scope)
    period, few = scope.period, Few(readings)
    parts = [_part(figure, scope, few.measure(figure)) for figure in FIGURES.values()]
    where = {part.key: FIGURES[part.key].section for part in parts}
    return Content(
        schema=SCHEMA,
        title=f"Agent load, {period.title}",
        facility=settings.FACILITY_NAME,
        zone=settings.FACILITY_TIME_ZONE,
        cluster=scope.cluster.name,
        is_demo=scope.cluster.is_demo,
        period=period.name,
        first=period.first.isoformat(),
        last=period.last.isoformat(),
        definitions={definition.value: definition.sentence for definition in Definition},
        limits=LIMITS,
        sections=tuple(
            report_content.Section(section.value, tuple(part for part in parts if where[part.key] is section))
            for section in Section
        ),
    )


def _part(figure: Figure, scope: Scope, found: Measured | None) -> report_content.Figure:
    measured = found or Measured(None)
    return report_content.Figure(
        key=figure.key,
        title=figure.title,
        definition=figure.definition,
        population=figure.population,
        unit=figure.unit.value,
        value=measured.value,
        unknown_share=measured.unknown_share,
        note=measured.note,
        needs=figure.needs or measured.needs,
        url=_address(figure, scope) if found and not measured.needs else "",
        columns=measured.columns,
        rows=tuple(
            report_content.Row(
                row.key, row.label, row.values,
                "" if figure.link else _url(figures.drill_query(figure, scope, row)),
            )
            for row in measured.rows
        ),
        limit=figure.limit,
        criterion=measured.criterion,
        is_met=measured.is_met,
    )  # fmt: skip


def _address(figure: Figure, scope: Scope) -> str:
    return figure.link(scope) if figure.link else _url(figures.drill_query(figure, scope))


def _url(query: str) -> str:
    return f"{JOBS}{query}" if query else ""


FLAT_COLUMNS = (
    "section", "figure", "title", "definition", "population", "limitation", "row", "label", "column", "unit", "value",
    "before", "change", "relative_change", "note",
)  # fmt: skip


def flat_rows(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a line for each number: the headline (`column` is value), the share not attributed, each cell.

    A figure that is not measured has one line, with what it needs as its note.
    """
    for section in content["sections"]:
        for figure in section["figures"]:
            names = ("title", "definition", "population")
            head = {"section": section["title"], "figure": figure["key"]} | {name: figure[name] for name in names}
            head["limitation"] = figure.get("limit", "")
            note = f"Not measured yet: needs {figure['needs']}" if figure["needs"] else figure["note"]
            value = {"column": "value", "unit": figure["unit"], "note": note}
            yield head | value | _changed(figure["value"], figure.get("before"))
            if figure["unknown_share"] is not None:
                yield head | {"column": "unknown_share", "unit": "share", "value": figure["unknown_share"]}
            for row in figure["rows"]:
                before = row.get("before") or [None] * len(row["values"])
                for column, number, old in zip(figure["columns"], row["values"], before, strict=True):
                    place = {"row": row["key"], "label": row["label"], "column": column["key"], "unit": column["unit"]}
                    yield head | place | _changed(number, old)


def _changed(value: float | None, before: float | None) -> dict[str, Any]:
    return {
        "value": value, "before": before, "change": changes.difference(value, before),
        "relative_change": changes.relative(value, before),
    }  # fmt: skip

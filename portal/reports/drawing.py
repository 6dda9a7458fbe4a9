"""A report's content made ready for its templates: every number written, every table with its heads and pictures.

No database: what is drawn is the content alone.
"""

from typing import Any

from portal.dashboard import formats
from portal.reports import changes
from portal.reports.bars import bars_of
from portal.reports.curves import WRITTEN_WITH, curves_of
from portal.reports.dots import dots_of
from portal.reports.headings import heading_of

# Tables longer than this stand behind "Show the numbers".
LONG = 13
# What the headline picture shows agents' share of.
LEAD_MEASURES = ("people", "submissions", "core-hours", "GPU-hours")
# Tables of more columns take a row of the page to themselves.
NARROW = 2
# As do tables of more rows: a card would be a tower.
FEW_ROWS = 8
Json = dict[str, Any]


def shown(value: float | None, unit: str) -> str:
    """Write a number of a figure in its unit, as on every page."""
    if value is None:
        return formats.ABSENT
    if unit == "share":
        return formats.percent(value)
    if unit == "s":
        return formats.duration(value)
    if unit == "ratio":
        return formats.ratio(value)
    if unit == "US$":
        return formats.money(value)
    return formats.count(value, changes.places_of(value))


def sections(content: Json) -> list[Json]:
    """Prepare a report's sections for its template: every number written, every table with its heads."""
    prepared = []
    for number, section in enumerate(content["sections"], start=1):
        measured = [_figure(figure) for figure in section["figures"] if not figure["needs"]]
        missing = [figure for figure in section["figures"] if figure["needs"]]
        prepared.append(
            {
                "number": number,
                "table_id": f"in-short-{number}",
                "title": section["title"],
                "figures": measured,
                "small": [figure for figure in measured if figure["table"] and not figure["wide"]],
                "large": [figure for figure in measured if figure["table"] and figure["wide"]],
                "plain": [figure for figure in measured if not figure["table"]],
                "missing": missing,
            }
        )
    return prepared


def verdict(figure: Json) -> str:
    """Say how a figure stands to its criterion: met, not met, or not known."""
    return {True: "met", False: "not met", None: "not known"}[figure.get("is_met")]


def lead_row(title: str, figure: Json) -> Json:
    """Return a row of the headline picture: agents' share of a measure, of the figure that has it by actor."""
    amounts = [row["values"][0] or 0 for row in figure["rows"]]
    return {
        "label": title[0].upper() + title[1:], "part": formats.short(amounts[0]), "whole": formats.short(sum(amounts)),
        "share": figure["value"],
    }  # fmt: skip


def _figure(figure: Json) -> Json:
    units = [column["unit"] for column in figure["columns"]]
    heads = [f"{column['title'].replace(';', ',')}|n" for column in figure["columns"]]
    titles = [column["title"] for column in figure["columns"]]
    rows = [{"label": row["label"], "cells": _cells(row, titles, units)} for row in figure["rows"]]
    long = len(rows) > LONG
    dots = None if long else dots_of(figure, shown)
    return figure | {
        "table_id": f"table-{figure['key']}",
        "unit_words": "" if figure["unit"] in WRITTEN_WITH else figure["unit"],
        "shown": shown(figure["value"], figure["unit"]),
        "url": "" if figure["value"] is None else figure["url"],
        "change": changes.written(figure["value"], figure.get("before"), figure["unit"]),
        "verdict": verdict(figure),
        "unknown": shown(figure["unknown_share"], "share") if figure["unknown_share"] is not None else "",
        "heads": "; ".join([heading_of(figure), *heads]),
        "table": rows,
        "long": long,
        "wide": len(units) > NARROW or len(rows) > FEW_ROWS,
        "stack": len(units) > NARROW and not long,
        "curves": curves_of(figure, shown) if long else None,
        "bars": None if dots else bars_of(figure, shown),
        "dots": dots,
        # Without a note nothing is withheld.
        "nothing": bool(rows) and not figure["note"] and not any(any(row["values"]) for row in figure["rows"]),
    }


def _cells(row: Json, titles: list[str], units: list[str]) -> list[Json]:
    """Return a row's cells, each with its head and change; the first number opens the jobs behind the row."""
    before = row.get("before") or [None] * len(units)
    return [
        {
            "head": title, "text": shown(value, unit), "change": changes.written(value, old, unit),
            "url": row["url"] if place == 0 and value is not None else "",
        }
        for place, (title, value, old, unit) in enumerate(zip(titles, row["values"], before, units, strict=True))
    ]  # fmt: skip

"""Change since the period before: of a figure that is the same in both reports, and shown in both.

What either report withholds has no change: from it and the number that is shown the other could be had.
"""

from typing import TYPE_CHECKING, Any, Final

from portal.core import clock
from portal.dashboard import formats

if TYPE_CHECKING:
    from portal.reports.models import Report
    from telemetry.selectors import Period

Json = dict[str, Any]
# What has to be equal for two figures to be the same one: else a rule that was mended would read as a change.
_SAME: Final = ("unit", "definition", "population")


def compare(content: Json, before: "Report | None", period: "Period", *, sharing: "Period | None" = None) -> Json:
    """Put what the report of the period before says beside every number of a content, or why there is no such.

    `before` is the published one, for what may be published; a draft for those alone who work on both.

    `sharing`: a published report that shows some of the days before. From sums of both single days could be had.
    """
    previous = period.previous()
    if period.ends > clock.now():
        return content | {
            "before": {"why": "The period goes on: a part of it is not compared with the whole one before."}
        }
    if before is None:
        return content | {"before": {"why": f"No report of {previous.title} is published to compare with."}}
    if before.built < before.ends:
        return content | {"before": {"why": f"The report of {previous.title} was made before that was over."}}
    if sharing is not None:
        return content | {
            "before": {"why": f"The report of {sharing.title} is published and shares days with {previous.title}."}
        }
    if not before.is_intact:
        return content | {"before": {"why": f"The report of {previous.title} is not what was stored."}}
    known = {figure["key"]: figure for section in before.content["sections"] for figure in section["figures"]}
    sections = [
        section | {"figures": [_beside(figure, known.get(figure["key"])) for figure in section["figures"]]}
        for section in content["sections"]
    ]
    said = {"period": previous.name, "title": previous.title, "state": before.state, "version": before.version}
    return content | {"before": said, "sections": sections}


def _beside(figure: Json, then: Json | None) -> Json:
    if then is None or any(figure[name] != then[name] for name in _SAME):
        return figure
    rows = {row["key"]: row for row in then["rows"]}
    columns = {(column["key"], column["unit"]): place for place, column in enumerate(then["columns"])}
    places = [columns.get((column["key"], column["unit"])) for column in figure["columns"]]
    return figure | {
        "before": _shown_in_both(figure["value"], then["value"]),
        "rows": [_row(row, rows.get(row["key"]), places) for row in figure["rows"]],
    }


def _row(row: Json, then: Json | None, places: list[int | None]) -> Json:
    # What is added up in a rest is not the same lot twice.
    if then is None or not row["key"] or row["key"].endswith("-others"):
        return row
    old = [None if place is None else then["values"][place] for place in places]
    return row | {"before": [_shown_in_both(value, each) for value, each in zip(row["values"], old, strict=True)]}


def _shown_in_both(value: float | None, before: float | None) -> float | None:
    return None if value is None else before


def difference(value: float | None, before: float | None) -> float | None:
    """Return how much more it is now; None where either is not known."""
    return None if value is None or before is None else value - before


def relative(value: float | None, before: float | None) -> float | None:
    """Return the difference as a share of what it was; None where that is nothing."""
    more = difference(value, before)
    return None if more is None or not before else more / abs(before)


def written(value: float | None, before: float | None, unit: str) -> str:
    """Write a change, absolute and relative: `+610 (+3.1 %)`; "" where there is none to be told."""
    more, part = difference(value, before), relative(value, before)
    if more is None:
        return ""
    if more == 0:
        return "no change"
    return _amount(more, unit) + (f" ({_sign(part)}{formats.percent(part)})" if part is not None else "")


def _amount(more: float, unit: str) -> str:
    if unit == "share":
        return formats.points(more)
    if unit == "s":
        return f"{_sign(more)}{formats.duration(more)}"
    if unit == "US$":
        return f"{_sign(more)}{formats.money(more)}"
    return f"{_sign(more)}{formats.ratio(more)}" if unit == "ratio" else formats.signed(more, places_of(more))


def places_of(number: float) -> int | None:
    """Return how many decimals are written: none from a hundred on, where they say nothing; else as `formats.count`."""
    return 0 if abs(number) >= 100 else None


def _sign(number: float) -> str:
    return "+" if number > 0 else ""

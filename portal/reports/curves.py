"""The picture of a long table: agents' and people's first column as curves, drawn without script for print too."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from portal.reports import inks

WIDTH: Final = 1000
HEIGHT: Final = 160
_MARGIN: Final = 2  # so that the highest point keeps its line's width
_LINES: Final = (("agent", "Agents", inks.AGENT), ("human", "People", inks.HUMAN))
_REST: Final = ("unknown", "Not attributed", "#7B8884")  # beside agents, where people are not told from it
# Units that a written number holds itself: 12 %, 3 s, 2 ×, $4.
WRITTEN_WITH: Final = ("share", "s", "ratio", "US$")
Json = dict[str, Any]


def curves_of(figure: Json, shown: Callable[[float | None, str], str]) -> Json | None:
    """Return curves over the rows of a figure: agents and people, or where people have no column what is not
    attributed, beside agents if they have one; where nothing is theirs that too, alone. None where it has none of
    these columns.

    A cell that is withheld is a gap. All curves stand on zero and share one scale.
    """
    if len(figure["rows"]) < 2:
        return None
    drawn: list[tuple[str, str, str]] = []
    columns, top = [], 0.0
    for drawn in _choices(figure["columns"]):
        columns = [_column(figure, kind) for kind, _, _ in drawn]
        if top := max((value for column in columns for value in column if value is not None), default=0):
            break
    if not top:
        return None
    unit = figure["columns"][_first(figure["columns"], drawn[0][0])]["unit"]
    lines = [
        {"kind": kind, "name": name, "colour": colour, "path": _path(column, top)}
        for (kind, name, colour), column in zip(drawn, columns, strict=True)
    ]
    peaks = [
        f"{line['name']} at most {shown(max((v for v in column if v is not None), default=None), unit)}"
        for line, column in zip(lines, columns, strict=True)
    ]
    ends = figure["rows"][0]["label"], figure["rows"][-1]["label"]
    words = "" if unit in WRITTEN_WITH else f" {unit}"
    return {
        "lines": lines, "first": ends[0], "last": ends[1], "top": f"{shown(top, unit)}{words}",
        "label": f"{figure['title']}, {ends[0]} to {ends[1]}: {'; '.join(peaks)}{words}.",
    }  # fmt: skip


def _choices(columns: Sequence[Json]) -> Iterator[list[tuple[str, str, str]]]:
    """Yield the lines that can be drawn of some columns, the ones that say most first."""
    found = [line for line in _LINES if _first(columns, line[0]) is not None]
    if len(found) == len(_LINES):
        yield found
        found = []  # without a session nothing is theirs: then all that there is is drawn
    if _first(columns, _REST[0]) is not None:
        yield [*found, _REST]


def _column(figure: Json, kind: str) -> list[float | None]:
    place = _first(figure["columns"], kind)
    return [row["values"][place] for row in figure["rows"]]


def _first(columns: Sequence[Json], kind: str) -> int | None:
    return next((place for place, one in enumerate(columns) if one["key"].split("_")[0] == kind), None)


def _path(values: Sequence[float | None], top: float) -> str:
    step, parts, pen = WIDTH / (len(values) - 1), [], "M"
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        parts.append(f"{pen}{place * step:.1f},{HEIGHT - _MARGIN - value / top * (HEIGHT - 2 * _MARGIN):.1f}")
        pen = "L"
    return " ".join(parts)

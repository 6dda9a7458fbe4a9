"""The picture of a long table: agents' and people's first column as two curves, drawn without script for print too."""

from collections.abc import Callable, Sequence
from typing import Any, Final

WIDTH: Final = 1000
HEIGHT: Final = 160
_MARGIN: Final = 2  # so that the highest point keeps its line's width
# For renderers of PDF that give a page's CSS to no picture; the page itself takes its tokens.
_LINES: Final = (("agent", "Agents", "#5443C0"), ("human", "People", "#B17F1D"))
Json = dict[str, Any]


def curves_of(figure: Json, shown: Callable[[float | None, str], str]) -> Json | None:
    """Return two curves over the rows of a figure; None where it has no column of agents and one of people.

    A cell that is withheld is a gap. Both curves stand on zero and share one scale.
    """
    places = [_first(figure["columns"], kind) for kind, _, _ in _LINES]
    if None in places or len(figure["rows"]) < 2:
        return None
    columns = [[row["values"][place] for row in figure["rows"]] for place in places]
    top = max((value for column in columns for value in column if value is not None), default=0)
    if not top:
        return None
    unit = figure["columns"][places[0]]["unit"]
    lines = [
        {"kind": kind, "name": name, "colour": colour, "path": _path(column, top)}
        for (kind, name, colour), column in zip(_LINES, columns, strict=True)
    ]
    peaks = [
        f"{line['name']} at most {shown(max((v for v in column if v is not None), default=None), unit)}"
        for line, column in zip(lines, columns, strict=True)
    ]
    ends = figure["rows"][0]["label"], figure["rows"][-1]["label"]
    words = "" if unit in ("share", "s", "ratio") else f" {unit}"
    return {
        "lines": lines, "first": ends[0], "last": ends[1], "top": f"{shown(top, unit)}{words}",
        "label": f"{figure['title']}, {ends[0]} to {ends[1]}: {'; '.join(peaks)}{words}.",
    }  # fmt: skip


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

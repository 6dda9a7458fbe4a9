"""The picture of a whole in parts, one bar an actor: drawn without script for print too."""

from collections.abc import Callable
from typing import Any, Final

from portal.reports import inks

WIDTH: Final = 1000
# What each actor's marks are, and their colour in print.
_FILLS: Final = {"agent": ("f-agent", inks.AGENT), "human": ("f-human", inks.HUMAN), "unknown": ("f-mute", "#56635F")}
_STRENGTHS: Final = ("1", ".68", ".4", ".16")  # of the parts, from the first to the last
Json = dict[str, Any]


def bars_of(figure: Json, shown: Callable[[float | None, str], str]) -> Json | None:
    """Return a bar an actor, in parts; None where a figure's rows are not actors with four shares of a whole each."""
    columns = [column for column in figure["columns"] if column["unit"] == "share"]
    if len(columns) != len(_STRENGTHS) or list(figure["columns"][: len(columns)]) != columns:
        return None
    rows = [row for row in figure["rows"] if row["key"] in _FILLS and None not in row["values"][: len(columns)]]
    if not rows:
        return None
    names = [column["title"] for column in columns]
    said = [
        f"{row['label']}: " + ", ".join(f"{name.lower()} {shown(value, 'share')}" for name, value in _parts(row, names))
        for row in rows
    ]  # fmt: skip
    return {
        "keys": [{"name": name, "strength": strength} for name, strength in zip(names, _STRENGTHS, strict=True)],
        "rows": [_bar(row) for row in rows], "label": f"{figure['title']}. {'; '.join(said)}.", "width": WIDTH,
    }  # fmt: skip


def _parts(row: Json, names: list[str]) -> list[tuple[str, float]]:
    return list(zip(names, row["values"][: len(names)], strict=True))


def _bar(row: Json) -> Json:
    css, colour = _FILLS[row["key"]]
    at, parts = 0.0, []
    for value, strength in zip(row["values"], _STRENGTHS, strict=False):
        parts.append({"x": f"{at:.1f}", "width": f"{max(0.0, value * WIDTH - 2):.1f}", "strength": strength})
        at += value * WIDTH
    return {"name": row["label"], "kind": row["key"], "css": css, "colour": colour, "parts": parts}

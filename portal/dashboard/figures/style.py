"""The Plotly template of the house: horizontal grid, no titles on axes, actors by colour, shape and dash."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif'
_BOX = {
    "bgcolor": "var(--ink)",
    "bordercolor": "var(--ink)",
    "font": {"family": SANS, "size": 12, "color": "var(--paper)"},
}
AXIS: dict[str, Any] = {
    "showgrid": False,
    "zeroline": False,
    "showline": False,
    "ticks": "",
    "automargin": True,
    "fixedrange": True,
    "tickangle": 0,
    "ticklabeloverflow": "allow",
    "ticklabelstandoff": 6,
    "tickfont": {"size": 12, "color": "var(--ink-2)"},
    "spikecolor": "var(--control)",
    "spikethickness": 1,
    "spikedash": "solid",
}
GATEHOUSE = go.layout.Template(
    layout={
        "font": {"family": SANS, "size": 12, "color": "var(--ink)"},
        "colorway": ["var(--ink)", "var(--ink-2)"],
        "paper_bgcolor": "var(--paper)",
        "plot_bgcolor": "var(--paper)",
        "margin": {"l": 0, "r": 20, "t": 8, "b": 0},
        "showlegend": False,
        "bargap": 0.28,
        "separators": ".,",
        "dragmode": False,
        "hovermode": "x unified",
        "xaxis": AXIS,
        "yaxis": AXIS | {"showgrid": True, "gridcolor": "var(--rule)"},
        "hoverlabel": _BOX,
    }
)
_MARKS = {
    "agent": {"color": "var(--agent)", "symbol": "square"},
    "human": {"color": "var(--human)", "symbol": "circle"},
    "unknown": {"color": "var(--unknown)", "symbol": "diamond-open"},
    "subject": {"color": "var(--ink)", "symbol": "circle"},
    "comparison": {"color": "var(--ink-2)", "symbol": "circle"},
}
_DASHES = {"human": "6px,3px", "unknown": "2px,3px"}
# Axis words beside people's marks need more contrast than the marks do.
WORD_COLOURS = {"agent": "var(--agent)", "human": "var(--human-word)"}


def marker(kind: str, size: int = 10) -> dict[str, Any]:
    """Return the marker of an actor (agent, human, unknown) or of a series (subject, comparison)."""
    return {**_MARKS[kind], "size": size}


def line(kind: str, thick: float = 2) -> dict[str, Any]:
    """Return the line of an actor or series."""
    return {"color": _MARKS[kind]["color"], "width": thick, "dash": _DASHES.get(kind, "solid")}


def colour(kind: str) -> str:
    """Return the colour of an actor or series."""
    return str(_MARKS[kind]["color"])


def guide(value: float, words: str, *, vertical: bool = False) -> dict[str, Any]:
    """Return a dashed ink line at `value` with its value written on it, for a layout's shapes and annotations."""
    along, across = ("x", "y") if vertical else ("y", "x")
    shape = {
        "type": "line",
        f"{along}0": value,
        f"{along}1": value,
        f"{across}0": 0,
        f"{across}1": 1,
        f"{across}ref": "paper",
        "line": {"color": "var(--ink)", "width": 1.5, "dash": "4px,3px"},
    }
    note = {
        along: value,
        across: 1,
        f"{across}ref": "paper",
        "text": words,
        "showarrow": False,
        "xanchor": "left" if vertical else "right",
        "yanchor": "bottom",
        "font": {"size": 12, "color": "var(--ink)"},
    }
    return {"shapes": [shape], "annotations": [note]}

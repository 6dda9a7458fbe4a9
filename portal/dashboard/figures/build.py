"""Builders of the house's five forms (design, section 5): each question has one form."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from portal.dashboard import formats
from portal.dashboard.figures import style

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = tuple(f"{hour:02d}:00" for hour in range(24))
STEPS = 5
Figure = dict[str, Any]


@dataclass(frozen=True)
class Series:
    """One line or column: its kind (agent, human, unknown, subject, comparison), values, and where a click leads.

    `words` are the values as text, for the hover box; `urls` the address of the rows behind each point.
    """

    name: str
    kind: str
    values: Sequence[float | None]
    words: Sequence[str] = ()
    urls: Sequence[str] = ()
    soft: bool = False


def as_json(figure: go.Figure) -> Figure:
    """Return a figure as plain lists and dicts; its template travels with it."""
    found: Figure = json.loads(figure.to_json())
    return found


def _empty(**layout: Any) -> go.Figure:
    return go.Figure(layout={"template": style.GATEHOUSE, **layout})


def _words(series: Series) -> list[str]:
    return list(series.words) or [formats.count(value) for value in series.values]


def _customdata(series: Series) -> list[str] | None:
    return list(series.urls) or None


def day_ticks(days: Sequence[dt.date], most: int = 5) -> dict[str, Any]:
    """Return at most `most` + 1 ticks written as 7 Jul; the first and last day are always among them."""
    step = max(1, math.ceil((len(days) - 1) / most))
    picked = [day for index, day in enumerate(days) if index % step == 0]
    if days and picked[-1] != days[-1]:
        if (days[-1] - picked[-1]).days * 2 < step:
            picked.pop()
        picked.append(days[-1])
    return {"tickvals": [d.isoformat() for d in picked], "ticktext": [formats.day(d) for d in picked]}


def _y_axis(prefix: str, suffix: str) -> dict[str, Any]:
    return {
        "rangemode": "tozero",
        "nticks": 6,
        "tickprefix": prefix,
        "ticksuffix": suffix,
        "separatethousands": True,
        "zeroline": True,
        "zerolinecolor": "var(--control)",
    }


def lines_by_day(
    days: Sequence[dt.date],
    series: Sequence[Series],
    *,
    prefix: str = "",
    suffix: str = "",
    direct: bool = False,
    limit: tuple[float, str] | None = None,
) -> Figure:
    """Build lines by day; `direct` writes each name at its line's end, `limit` is (value, words)."""
    x = [day.isoformat() for day in days]
    extra = style.guide(*limit) if limit else {}
    figure = _empty(
        xaxis={
            **day_ticks(days),
            "showspikes": True,
            "hoverformat": "%A %-d %B",
            "type": "date",
            "range": [x[0], x[-1]],
        },
        yaxis=_y_axis(prefix, suffix),
        **extra,
    )
    for one in series:
        figure.add_scatter(
            x=x, y=list(one.values), name=one.name, mode="lines", line=style.line(one.kind),
            text=_words(one), customdata=_customdata(one), hovertemplate="%{text}", connectgaps=False,
        )  # fmt: skip
        if direct:
            _name_the_end(figure, x, one)
    if direct:
        figure.update_layout(margin_r=88)
    return as_json(figure)


def _name_the_end(figure: go.Figure, x: Sequence[str], series: Series) -> None:
    ends = [(at, value) for at, value in zip(x, series.values, strict=True) if value is not None]
    if ends:
        figure.add_annotation(
            x=ends[-1][0], y=ends[-1][1], text=series.name, showarrow=False, xanchor="left", xshift=8,
            font={"color": style.WORD_COLOURS.get(series.kind, "var(--ink)"), "size": 12},
        )  # fmt: skip


def stacked_columns(days: Sequence[dt.date], series: Sequence[Series], *, prefix: str = "", suffix: str = "") -> Figure:
    """Build stacked columns by day, for parts of one actor's total; a `soft` part takes the lighter tint."""
    figure = _empty(
        barmode="stack",
        xaxis={**day_ticks(days), "hoverformat": "%A %-d %B", "type": "date"},
        yaxis=_y_axis(prefix, suffix),
    )
    for one in series:
        soft = f"var(--{one.kind}-3)" if one.kind in {"agent", "human"} else "var(--ink-2)"
        figure.add_bar(
            x=[day.isoformat() for day in days], y=list(one.values), name=one.name,
            marker={"color": soft if one.soft else style.colour(one.kind), "line": {"width": 0}},
            text=_words(one), textposition="none", customdata=_customdata(one), hovertemplate="%{text}",
        )  # fmt: skip
    return as_json(figure)


def hour_of_week(
    shares: Sequence[Sequence[float]],
    kind: str,
    *,
    top: float,
    urls: Sequence[Sequence[str]] | None = None,
    frame: tuple[int, int] | None = (8, 18),
) -> Figure:
    """Build a heatmap, weekday (Monday first) by hour, in five steps from 0 to `top`.

    Panels that are compared take one `top`. `kind` is agent or human; `frame` marks working hours Monday to Friday.
    """
    steps = [
        [edge, f"var(--{kind}-{step + 1})"] for step in range(STEPS) for edge in (step / STEPS, (step + 1) / STEPS)
    ]
    figure = _empty(
        hovermode="closest",
        xaxis={
            "tickvals": [-0.5, 5.5, 11.5, 17.5],
            "ticktext": ["00:00", "06:00", "12:00", "18:00"],
            "range": [-0.5, 23.5],
        },
        yaxis={"tickvals": list(range(7)), "ticktext": list(WEEKDAYS), "range": [6.5, -0.5], "showgrid": False},
    )
    figure.add_heatmap(
        z=[list(row) for row in shares], x=list(range(24)), y=list(range(7)), zmin=0, zmax=top, colorscale=steps,
        showscale=False, xgap=1, ygap=1, customdata=urls,
        text=[
            [f"{WEEKDAYS[d]} {HOURS[h]}: {formats.percent(share, 2)} of the week" for h, share in enumerate(row)]
            for d, row in enumerate(shares)
        ],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    if frame:
        figure.add_shape(
            type="rect", x0=frame[0] - 0.5, x1=frame[1] - 0.5, y0=-0.5, y1=4.5,
            line={"color": "var(--ink)", "width": 1.5}, fillcolor="rgba(0,0,0,0)",
        )  # fmt: skip
    return as_json(figure)


def dot_pairs(
    classes: Sequence[str],
    agents: Series,
    people: Series,
    *,
    guide: tuple[float, str] | None = None,
    suffix: str = "",
) -> Figure:
    """Build pairs of dots on one axis, one row a class, with the ratio at the right."""
    rows = list(range(len(classes)))
    extra = style.guide(*guide, vertical=True) if guide else {}
    figure = _empty(
        hovermode="closest",
        margin={"l": 0, "r": 56, "t": 24, "b": 0},
        xaxis={"rangemode": "tozero", "showgrid": True, "gridcolor": "var(--rule)", "nticks": 6, "ticksuffix": suffix},
        yaxis={"tickvals": rows, "ticktext": list(classes), "range": [len(rows) - 0.4, -0.6], "showgrid": False,
               "ticklabelstandoff": 32, "tickfont": {"color": "var(--ink)", "size": 12}},
        **extra,
    )  # fmt: skip
    for row in rows:
        low, high = people.values[row], agents.values[row]
        if low is not None and high is not None:
            _joined(figure, row, low, high)
    for one, other in ((people, agents), (agents, people)):
        figure.add_scatter(
            x=list(one.values), y=rows, name=one.name, mode="markers+text", marker=style.marker(one.kind, 12),
            text=_words(one), textposition=_beside(one.values, other.values), cliponaxis=False,
            textfont={"color": style.WORD_COLOURS.get(one.kind, "var(--ink)"), "size": 12},
            customdata=_customdata(one), hovertemplate=f"{one.name}: %{{text}}<extra></extra>",
        )  # fmt: skip
    figure.add_annotation(x=1, y=1, xref="paper", yref="paper", text="ratio", xshift=56, yshift=18, xanchor="right",
                          showarrow=False, font={"color": "var(--ink-2)"})  # fmt: skip
    return as_json(figure)


def _beside(values: Sequence[float | None], others: Sequence[float | None]) -> list[str]:
    return [
        "middle right" if (value or 0) >= (other or 0) else "middle left"
        for value, other in zip(values, others, strict=True)
    ]


def _joined(figure: go.Figure, row: int, people: float, agents: float) -> None:
    figure.add_shape(
        type="line", x0=people, x1=agents, y0=row, y1=row, layer="below", line={"color": "var(--control)", "width": 1}
    )
    figure.add_annotation(
        x=1, xref="paper", y=row, text=formats.ratio(agents / people) if people else formats.ABSENT, xshift=56,
        xanchor="right", showarrow=False, font={"color": "var(--ink)", "size": 12},
    )  # fmt: skip


def cumulative(
    series: Sequence[Series],
    edges: Sequence[float],
    *,
    ticks: Sequence[tuple[float, str]] = (),
    telling: tuple[float, float, str] | None = None,
) -> Figure:
    """Build cumulative curves over a log axis: each series holds shares 0 to 1 at `edges`; ticks are (value, words).

    `telling` marks one point: (edge, share, words).
    """
    figure = _empty(
        xaxis={"type": "log", "showspikes": True, "tickvals": [at for at, _ in ticks] or None,
               "ticktext": [words for _, words in ticks] or None},
        yaxis={"range": [0, 1], "tickformat": ".0%", "nticks": 5, "zeroline": True, "zerolinecolor": "var(--control)"},
    )  # fmt: skip
    for one in series:
        words = list(one.words) or [formats.percent(value) for value in one.values]
        figure.add_scatter(
            x=list(edges), y=list(one.values), name=one.name, mode="lines", line=style.line(one.kind),
            text=words, customdata=_customdata(one), hovertemplate="%{text}",
        )  # fmt: skip
    if telling:
        at, share, note = telling
        figure.add_scatter(x=[at], y=[share], mode="markers", marker=style.marker("subject", 9), hoverinfo="skip")
        figure.add_annotation(
            x=math.log10(at), y=share, text=note, showarrow=False, xanchor="left", xshift=10, yshift=-10
        )
    return as_json(figure)

"""Charts and the share picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.dashboard import formats
from portal.dashboard.components.library import draw, register, width

HEIGHTS = (140, 160, 190, 220, 240)


@register.simple_block_tag
def chart(
    content: str, title: str, src: str = "", *, sub: str = "", label: str = "", height: int = 220, legend: str = "",
    plots: Sequence[Any] = (), numbers: Any = None, exports: Sequence[Any] = (), lead: bool = False, css: str = "",
    level: int = 2,
) -> SafeString:  # fmt: skip
    """Draw a chart whose figure is fetched from `src`; the block is its foot (definition, links).

    `label` is the text alternative: range, extremes, the comparison. `plots` ({src, label, legend, title}) draws
    several panels. `legend` lists actors ("agent,human"). `numbers` ({head, rows}) is the table behind it.
    Heights are reserved before the figure comes: 140, 160, 190, 220 or 240 px.
    """
    if height not in HEIGHTS:
        raise ValueError(f"height is one of {HEIGHTS}")
    panels = plots or [{"src": src, "label": label}]
    return draw("chart", {**locals(), "panels": panels, "legend": _actors(legend)})


ACTOR_WORDS = {"agent": "Agents", "human": "People", "unknown": "Not attributed", "rest": "Everyone else"}


def _actors(legend: str) -> list[tuple[str, str]]:
    kinds = [part.strip() for part in legend.split(",") if part.strip()]
    return [(kind, ACTOR_WORDS[kind]) for kind in kinds]


@register.simple_tag
def legend(kinds: str) -> SafeString:
    """Draw a legend of actor shapes: "agent,human"."""
    return draw("legend", {"legend": _actors(kinds)})


@register.simple_tag
def share(
    rows: Sequence[Any], reference: float, reference_label: str, *, tight: bool = False, agents: str = "Agent users",
    rest: str = "Everyone else",
) -> SafeString:  # fmt: skip
    """Draw the headline picture: rows {label, part, whole, share, url, part_url, rest_url}, shares 0 to 1.

    `reference` is the share all bars are held against (agents' share of people), written under the dashed line.
    """
    lines = [
        {
            "row": row,
            "width": width(row["share"]),
            "agent": formats.percent(row["share"]),
            "rest": formats.percent(1 - row["share"]),
            "times": formats.ratio(row["share"] / reference) if reference else formats.ABSENT,
            "wide": row["share"] >= 0.18,  # its words fit into the bar on a telephone too
            "full": row["share"] > 0.85,
        }
        for row in rows
    ]
    more = {"lines": lines, "at": width(reference), "against": formats.percent(reference)}
    # Near an edge of a telephone a label in the middle of its line would stand beyond it.
    more["anchor"] = "start" if reference < 0.3 else "end" if reference > 0.7 else "middle"
    return draw("share", locals() | more)


@register.simple_block_tag
def behind(content: str, label: str = "Show the numbers") -> SafeString:
    """Hold the table behind a picture."""
    return format_html('<details class="behind"><summary>{}</summary>{}</details>', label, content)

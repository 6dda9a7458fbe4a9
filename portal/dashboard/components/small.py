"""Small parts: fig, actor, meters, bars, sparkline, sla-clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from portal.dashboard import formats
from portal.dashboard.components.library import NOTHING, fig_html, icon_html, register, width
from portal.dashboard.components.words import moment

NEAR, FULL = 0.8, 1.0
NO_LIMIT = "no limit"

register.simple_tag(icon_html, name="icon")


@register.simple_tag
def fig(text: Any, url: str = "", label: str = "") -> SafeString:
    """Link a number to the rows that make it; `label` names it where the number alone says too little."""
    return fig_html(text, url, label)


@register.simple_tag
def actor(name: Any, kind: str = "agent", url: str = "") -> SafeString:
    """Name who did it, with the shape of agent, human, unknown or rest (the last in legends only)."""
    style = "" if kind == "agent" else f" actor--{kind}"
    inner = format_html('<a href="{}">{}</a>', url, name) if url else conditional_escape(name)
    return format_html('<span class="actor{}">{}</span>', style, inner)


def fill_of(share: float | None) -> str:
    """Return the class of a meter's fill: neutral, near from 80 %, over from 100 %."""
    if share is not None and share >= FULL:
        return "meter__fill meter__fill--over"
    return "meter__fill meter__fill--near" if share is not None and share > NEAR else "meter__fill"


@register.simple_tag
def meter(used: float | None, allowed: float | None, label: str, pace: float | None = None) -> SafeString:
    """Draw used of allowed; `label` says both numbers, `pace` (0 to 1) marks an even pace."""
    share = formats.share_of(used, allowed)
    at = width(pace)
    line = NOTHING
    if pace is not None:
        line = format_html('<line class="meter__mark" x1="{}" x2="{}" y1="-2" y2="110%"/>', at, at)
    return format_html(
        '<svg class="meter" role="img" aria-label="{}"><rect class="meter__track" width="100%" height="100%"/>'
        '<rect class="{}" width="{}" height="100%"/>{}</svg>',
        label, fill_of(share), width(share), line,
    )  # fmt: skip


@register.simple_tag
def limit_bar(used: float | None, allowed: float | None) -> SafeString:
    """Draw the short bar beside a running time and its limit; both stand in the cell as text."""
    return _two(fill_of(formats.share_of(used, allowed)), "meter__track", formats.share_of(used, allowed), "lim")


@register.simple_tag
def split(share: float | None, text: Any = "", url: str = "") -> SafeString:
    """Draw the agents' share of a whole in a cell, with the share as a fig beside it."""
    number = fig_html(text or formats.percent(share), url)
    return format_html("{}{}", _two("f-agent", "f-human-soft", share, "split"), number)


@register.simple_tag
def bar(share: float | None, fill: str = "agent", track: str = "track") -> SafeString:
    """Draw a thin bar under a number: fill agent, human, ink or mute; track `track` or `human-soft`."""
    return _two(f"f-{fill}", f"f-{track}", share, "bar")


def _two(fill: str, track: str, share: float | None, css: str) -> SafeString:
    return format_html(
        '<svg class="{}" aria-hidden="true"><rect class="{}" width="100%" height="100%"/>'
        '<rect class="{}" width="{}" height="100%"/></svg>',
        css, track, fill, width(share),
    )  # fmt: skip


def spark_path(values: Sequence[float | None], wide: float = 100, high: float = 22, pad: float = 2) -> list[str]:
    """Return "x,y" points of a sparkline in a `wide` × `high` box; absent values leave their place out."""
    known = [v for v in values if v is not None]
    if len(known) < 2:
        return []
    low, span = min(known), (max(known) - min(known)) or 1
    step = wide / (len(values) - 1)
    room = high - 2 * pad
    return [
        f"{index * step:.4g},{high - pad - (value - low) / span * room:.4g}"
        for index, value in enumerate(values)
        if value is not None
    ]


@register.simple_tag
def sparkline(values: Sequence[float | None] | None, kind: str = "") -> SafeString:
    """Draw how a value went, oldest first; `kind="agent"` where the values are agents'."""
    path = spark_path(values or [])
    if not path:
        return NOTHING
    return format_html(
        '<svg class="spark{}" viewBox="0 0 100 22" preserveAspectRatio="none" aria-hidden="true">'
        '<path d="M{}"/><path class="end" d="M{}h.01"/></svg>',
        " spark--agent" if kind == "agent" else "", " ".join(path), path[-1],
    )  # fmt: skip


@register.simple_tag
def sla_clock(
    opened: dt.datetime | None,
    due: dt.datetime | None,
    met: dt.datetime | None = None,
    now: dt.datetime | None = None,
    brief: bool = False,
) -> SafeString:
    """Draw the time that is left to `due`, over it, or how long it took; soon below a quarter of the time."""
    if opened is None or due is None:
        return format_html('<span class="muted">{}</span>', NO_LIMIT)
    if met is not None and met <= due:
        return format_html(
            '<span class="sla sla--met">{}met in {}</span>',
            icon_html("check"),
            formats.duration(met - opened),
        )
    at = met or now or timezone.now()
    left, whole = (due - at).total_seconds(), max((due - opened).total_seconds(), 1.0)
    if left < 0:
        return _clock("sla sla--over", 100, f"{_length(-left)} over", due)
    css = "sla sla--soon" if left < whole / 4 else "sla"
    return _clock(css, round(left / whole * 100), _length(left) + ("" if brief else " left"), due)


def _length(seconds: float) -> str:
    return formats.duration(int(seconds) if seconds < 60 else int(seconds // 60 * 60))


def _clock(css: str, part: int, words: str, due: dt.datetime) -> SafeString:
    return format_html(
        '<span class="{}"><svg class="sla__ring" viewBox="0 0 20 20" aria-hidden="true">'
        '<circle cx="10" cy="10" r="7"/>'
        '<circle cx="10" cy="10" r="7" pathLength="100" stroke-dasharray="{} 100"/></svg>'
        '{}<span class="sr">, due {}</span></span>',
        css, part, words, moment(due, "when"),
    )  # fmt: skip


@register.simple_block_tag
def budget(
    content: str, used: float, allowed: float, unit: str, url: str = "", left: str = "", label: str = ""
) -> SafeString:
    """Draw used of allowed; the block says when it is full again."""
    rest = left or f"{_plain(max(allowed - used, 0))} left"
    words = label or f"{_plain(used)} of {_plain(allowed)} {unit} used"
    return format_html(
        '<div class="budget"><span class="big">{} of {} {}</span><span class="muted">{}</span>{}'
        '<span class="help">{}</span></div>',
        fig_html(_plain(used), url), _plain(allowed), unit, rest, meter(used, allowed, words), content,
    )  # fmt: skip


def _plain(value: float) -> str:
    return formats.count(value, 0 if float(value).is_integer() else 1)

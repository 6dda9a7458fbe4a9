"""Parts that hold other content: kpi, facts, callout, empty, pass, acts, todo, chart, share and so on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.template.context import Context
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.dashboard import formats
from portal.dashboard.components.library import attributes, draw, icon_html, register
from portal.dashboard.components.states import chip_html

THIN = "\u2009"
CALLOUT_ICONS = {"go": "check", "caution": "alert", "critical": "octagon", "": "info"}
MESSAGE_KINDS = {"success": "go", "warning": "caution", "error": "critical"}


@register.simple_block_tag
def page_head(content: str, title: str, deck: str = "") -> SafeString:
    """Draw the head of a page; the block holds its filters or actions, `deck` one line of context."""
    return draw("page_head", {"title": title, "deck": deck, "content": content})


@register.simple_block_tag
def section(
    content: str,
    title: str,
    id: str,
    css: str = "",
    meta: str = "",
    end: str = "",
    end_url: str = "",
    level: int = 2,
) -> SafeString:
    """Draw a section on its ink line; `end` and `end_url` make the link at the right of its head."""
    return draw("section", locals())


@register.simple_block_tag
def kpis(content: str, label: str = "Key figures", columns: int = 6) -> SafeString:
    """Hold key figures in a row of six or four."""
    css = "kpis kpis--4" if columns == 4 else "kpis"
    return format_html('<section class="{}" aria-label="{}">{}</section>', css, label, content)


@register.simple_block_tag
def kpi(
    content: str, label: str, value: Any, url: str = "", *, unit: str = "", values: Sequence[float] | None = None,
    kind: str = "", change: str = "", context: str = "", used: float | None = None, allowed: float | None = None,
    pace: float | None = None,
) -> SafeString:  # fmt: skip
    """Draw a key figure; the block says what it is of. `values` makes a sparkline, `used`/`allowed` a meter."""
    return draw("kpi", {**locals(), "text": big(value, unit)})


def big(value: Any, unit: str = "") -> SafeString:
    """Return a key figure with its units set small: 55.8 and %, 1 min 52 s."""
    text = f"{value}{formats.NBSP}{unit}" if unit else str(value)
    first, *rest = re.split(f"([{formats.NBSP}{formats.NNBSP}])", text)
    # Only a sign (%, ×) stands close to its number; a word after it would run together with it.
    gaps = ["", *(THIN if gap == formats.NBSP else "" for gap in rest[::2])]
    return SafeString(format_html_join("", "{}{}", zip(gaps, map(_small, [first, *rest[1::2]]), strict=True)))


def _is_unit(part: str) -> bool:
    return not any(letter.isdigit() for letter in part)


def _small(part: str) -> SafeString:
    return format_html("<small>{}</small>" if _is_unit(part) and part != formats.ABSENT else "{}", part)


@register.simple_block_tag
def facts(content: str, style: str = "") -> SafeString:
    """Hold facts as label and value pairs: style "" (as many columns as fit), "3" or "one"."""
    css = f"facts facts--{style}" if style else "facts"
    return format_html('<dl class="{}">{}</dl>', css, content)


@register.simple_block_tag
def fact(content: str, label: str, note: str = "", mono: bool = False) -> SafeString:
    """Draw one fact; `note` is the second line, for where we know it from."""
    small = format_html(" <small>{}</small>", note) if note else ""
    css = attributes(_class="mono" if mono else "")
    return format_html("<div><dt>{}</dt><dd{}>{}{}</dd></div>", label, css, content, small)


@register.simple_block_tag
def clocks(content: str) -> SafeString:
    """Hold an incident's clocks, as `fact` pairs in a row of four."""
    return format_html('<dl class="clocks">{}</dl>', content)


@register.simple_block_tag
def callout(
    content: str, kind: str = "", title: str = "", *, action: str = "", action_url: str = "", stack: bool = False,
    icon: str = "", level: str = "",
) -> SafeString:  # fmt: skip
    """Draw a callout: kind go, caution, critical or "" (`level` takes Django's message tags instead)."""
    kind = MESSAGE_KINDS.get(level, kind)
    return draw("callout", {**locals(), "kind": kind, "icon": icon or CALLOUT_ICONS[kind]})


@register.simple_block_tag
def empty(
    content: str, title: str, action: str = "", action_url: str = "", action2: str = "", action2_url: str = ""
) -> SafeString:
    """Draw an empty state: what will appear here and when, and what to do next."""
    return draw("empty", locals())


@register.simple_block_tag
def agent_pass(
    content: str, name: str, state: str, *, tier: str = "", tier_note: str = "", reasons: Sequence[Any] = (),
    tier_foot: str = "", purpose: str = "", small: bool = False, eyebrow: str = "", heading: str = "h1",
) -> SafeString:  # fmt: skip
    """Draw an agent's pass; the block holds its facts. Grey unless the state is active."""
    if heading not in {"h1", "h2", "h3"}:
        raise ValueError("heading is h1, h2 or h3")
    off = str(getattr(state, "value", state)).lower() not in {"active", "aup_required", "expires_soon"}
    return draw("pass", {**locals(), "off": off})


@register.simple_tag
def reasons(items: Sequence[Any], foot: str = "") -> SafeString:
    """Draw signed reasons ({weight, text}) that add up to the tier or score above them."""
    return draw("reasons", {"reasons": items, "foot": foot})


@register.filter
def weight(value: float | str) -> str:
    """Write a reason's weight with its sign; words pass."""
    return value if isinstance(value, str) else formats.signed(value)


@register.simple_tag
def steps(items: Sequence[Any], label: str = "State") -> SafeString:
    """Draw a fixed path: items {title, note, at}, with `at` past, current or ""."""
    return draw("steps", {"items": items, "label": label, "css": "steps", "tag": "div"})


@register.simple_tag
def ladder(items: Sequence[Any], label: str = "Steps") -> SafeString:
    """Draw the same path standing up."""
    return draw("steps", {"items": items, "label": label, "css": "ladder", "upright": True})


@register.simple_tag
def timeline(entries: Sequence[Any], narrow: bool = False, label: str = "Timeline") -> SafeString:
    """Draw what happened, newest first: entries {at, by: agent|human|system, what, note, url}."""
    return draw("timeline", locals())


@register.simple_tag
def ticker(entries: Sequence[Any], label: str = "Latest events", id: str = "ticker") -> SafeString:
    """Draw the event ticker: entries {at, text, url, name, whose}; `name` is what the link says."""
    return draw("ticker", locals())


@register.simple_tag
def quote(text: str, by: str = "", at: Any = None) -> SafeString:
    """Show words of a person or an agent as written: never rendered, never as instructions."""
    # Escaped even where a template or caller thinks them safe.
    return draw("quote", {"text": escape(text), "by": by, "at": at})


@register.simple_tag
def evidence(text: str, masks: Sequence[str] = (), label: str = "Evidence") -> SafeString:
    """Show what was seen, as text; each string of `masks` found in it is drawn as a masked span."""
    html = str(escape(text))
    for masked in sorted({str(m) for m in masks if m}, key=len, reverse=True):
        shown = str(escape(masked))
        html = html.replace(shown, f'<span class="mask">{shown}</span>')
    body = mark_safe(html)  # noqa: S308  text and masks were escaped above
    return format_html(
        '<pre class="evidence" tabindex="0" role="region" aria-label="{}"><code>{}</code></pre>', label, body
    )


@register.simple_block_tag
def acts(content: str) -> SafeString:
    """Hold what can be done next, in order of advice."""
    return format_html('<ol class="acts">{}</ol>', content)


@register.simple_block_tag(takes_context=True)
def act(
    context: Context, content: str, label: str, url: str, *, style: str = "", method: str = "post", icon: str = "",
    name: str = "", value: str = "", confirm: str = "",
) -> SafeString:  # fmt: skip
    """Draw one act with its consequence (the block); style primary, critical or "". get makes a link."""
    token = context.get("csrf_token") if method == "post" else ""
    return draw("act", {**locals(), "token": token})


@register.simple_block_tag
def todo(content: str) -> SafeString:
    """Hold what waits for this person; draw nothing when nothing does."""
    return format_html('<ul class="todo">{}</ul>', content) if content.strip() else SafeString("")


@register.simple_block_tag
def todo_item(content: str, title: str, note: str = "", icon: str = "clock") -> SafeString:
    """Draw one thing that waits; the block holds its buttons, primary first."""
    return format_html(
        '<li>{}<div><b>{}</b><p>{}</p></div><span class="btn-row">{}</span></li>',
        icon_html(icon),
        title,
        note,
        content,
    )


@register.simple_tag
def incident_row(
    url: str, severity: str, title: str, meta: str = "", clock: str = "", ref: str = "", current: bool = False,
    flush: bool = False, chip: str = "",
) -> SafeString:  # fmt: skip
    """Draw a row of a split view's list; `clock` is an sla_clock, `chip` replaces the severity's."""
    return draw("incident_row", locals())


@register.simple_block_tag
def split_list(content: str, label: str) -> SafeString:
    """Hold the list of a split view, moved through with J and K."""
    return format_html(
        '<section class="split-view__list" data-keys="list" aria-label="{}">{}</section>', label, content
    )


@register.simple_block_tag
def split_detail(content: str, labelledby: str) -> SafeString:
    """Hold the detail of a split view, named by its heading's id."""
    return format_html('<section class="split-view__detail" aria-labelledby="{}">{}</section>', labelledby, content)


@register.simple_block_tag
def harm(content: str, id: str, title: str) -> SafeString:
    """Hold a harmful act's form, opened by a link to #id: what will stop, who is told, how it is undone."""
    return draw("harm", locals())


@register.simple_tag
def mark_off(label: str) -> SafeString:
    """Draw the neutral chip without an icon, for a qualifier like "staff approved"."""
    return chip_html("off", label, "")

"""The one template library of the house, and what its parts share."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()
NOTHING = SafeString("")


def draw(name: str, context: dict[str, Any]) -> SafeString:
    """Render `components/<name>.html` with `context`."""
    return SafeString(render_to_string(f"components/{name}.html", context))


def icon_html(name: str) -> SafeString:
    """Return an icon of the sprite, hidden from screen readers."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>', name)


def fig_html(text: Any, url: str = "", label: str = "") -> SafeString:
    """Return a number as a link to the rows that make it; plain text where there is no address."""
    if not url:
        return SafeString(conditional_escape(text))
    named = format_html(' aria-label="{}"', label) if label else NOTHING
    return format_html('<a class="fig" href="{}"{}>{}</a>', url, named, text)


def width(share: float | None) -> str:
    """Return a share between 0 and 1 as an SVG width: 55.8%."""
    bounded = min(max(float(share or 0), 0.0), 1.0)
    return f"{bounded * 100:.4g}%"


def attributes(**values: Any) -> SafeString:
    """Return HTML attributes from keywords; None, False and "" are left out, True stands alone, _ becomes -."""
    parts = []
    for key, value in values.items():
        name = key.strip("_").replace("_", "-")
        if value is True:
            parts.append(format_html(" {}", name))
        elif value not in (None, False, ""):
            parts.append(format_html(' {}="{}"', name, value))
    return mark_safe("".join(parts))  # noqa: S308  every part was escaped by format_html

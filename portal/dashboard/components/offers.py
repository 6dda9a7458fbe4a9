"""What a filter offers against what the address asks for: nothing is left out without a word.

A page that cannot filter by a value falls back, and its control says so. A page that can (any partition's name, say)
finds nothing, and the control keeps the value on offer, so that it shows the filter in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpRequest
from django.template.context import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.dashboard.components.library import NOTHING, register

SHOWN = 40


def offer(
    request: HttpRequest | None, name: str, label: str, options: Sequence[Any], current: str | None
) -> tuple[list[Any], str, SafeString]:
    """Return the options of a control, which of them is chosen, and the note of what was left out.

    `current` is the value in force; None where the page takes whatever the address asks for.
    """
    asked = request.GET.get(name, "") if request else ""
    chosen = str(asked if current is None else current)
    known = [str(option[0]) for option in options]
    if chosen and chosen not in known:
        return [*options, (chosen, chosen[:SHOWN])], chosen, NOTHING
    words = next((str(option[1]) for option in options if str(option[0]) == chosen), "")
    return list(options), chosen, note_left_out(label, asked, [*known, chosen], words)


def note_left_out(label: str, asked: str, known: Iterable[str], shown: str = "") -> SafeString:
    """Say which of the comma-separated values asked for are not `known`, and what is shown instead; "" where all are.

    A null byte is nothing that anybody typed.
    """
    names = {one.casefold() for one in known}
    unknown = [part for part in asked.replace("\0", "").split(",") if part and part.casefold() not in names]
    if not unknown:
        return NOTHING
    return format_html(
        '<p class="filters__note" role="status">{} “{}” is not known here{}.</p>',
        label, ", ".join(unknown)[:SHOWN], f": shown is “{shown}”" if shown else " and was left out",
    )  # fmt: skip


@register.simple_tag(takes_context=True)
def left_out(context: Context, name: str, label: str, known: Iterable[Any]) -> SafeString:
    """Say what of a parameter without a control of its own was left out; known are values, or (value, …)."""
    request = context.get("request")
    values = [str(one[0]) if isinstance(one, list | tuple) else str(one) for one in known]
    return note_left_out(label, request.GET.get(name, "") if request else "", values)

"""The page of all parts, for those who build pages: only where DEBUG is on."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

from django import forms
from django.conf import settings
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone

from portal.dashboard import figures, formats
from portal.dashboard.components.states import KINDS
from portal.dashboard.dev_samples import samples
from portal.dashboard.figures import Series

FIRST_DAY = dt.date(2026, 7, 7)
DAYS = [FIRST_DAY + dt.timedelta(days=n) for n in range(26)]


class RegisterForm(forms.Form):
    """The fields a page can hold, one of each kind."""

    name = forms.SlugField(help_text="Appears next to its jobs. Lower case, starts with your lab's name.")
    harness = forms.ChoiceField(
        choices=[("claude-code", "Claude Code"), ("codex", "Codex")],
        help_text="The program that runs the model. We check it against what the login node sees.",
    )
    purpose = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2}),
        label="What it is for",
        required=False,
        help_text="One or two sentences. Staff and InfoSec read this first when something looks odd.",
    )
    autonomy = forms.ChoiceField(
        widget=forms.RadioSelect,
        label="How much it does alone",
        help_text="This weighs most in its risk tier.",
        choices=[
            ("supervised", "Supervised\nSomeone in the lab is at the keyboard and sees each step."),
            ("unattended", "Unattended\nIt submits, waits and resubmits with nobody watching."),
        ],
    )
    accept = forms.BooleanField(label="I have read AUP 2026-06 and accept it for this agent.")


def wave(seed: int, low: float, high: float) -> list[float]:
    """Return 26 values between `low` and `high` that look like a month."""
    return [
        round(low + (high - low) * (0.5 + 0.35 * math.sin(n * 0.9 + seed) + 0.15 * math.cos(n * 2.3 * seed)), 1)
        for n in range(26)
    ]


def _only_in_development() -> None:
    if not settings.DEBUG:
        raise Http404


def components(request: HttpRequest) -> HttpResponse:
    """Show each part with sample data."""
    _only_in_development()
    now = timezone.now()
    form = RegisterForm({"name": "okafor membrane", "harness": "codex", "autonomy": "supervised"})
    context = {
        "now": now,
        "chips": [(kind, list(states)) for kind, states in KINDS.items()],
        "values": wave(1, 10, 40),
        "form": form,
        "page": Paginator(range(12_319), 4).get_page(request.GET.get("page")),
        "opened": now - dt.timedelta(minutes=38),
        "due": now + dt.timedelta(hours=3, minutes=22),
        "soon": now + dt.timedelta(minutes=5),
        "late": now - dt.timedelta(minutes=14),
        "met": now - dt.timedelta(minutes=21),
        **samples(now),
    }
    return render(request, "dev/components.html", context)


def _by_day() -> dict[str, Any]:
    agents, people = wave(1, 127, 240), wave(2, 23, 187)
    rows = [f"/dev/components/?day={day}" for day in DAYS]
    return figures.lines_by_day(
        DAYS,
        [
            Series("People", "human", people, [formats.money(v) for v in people], rows),
            Series("Agents", "agent", agents, [formats.money(v) for v in agents], rows),
        ],
        prefix="$",
    )


def _waits() -> dict[str, Any]:
    trials, others = wave(3, 1.3, 3.1), wave(4, 14, 36)
    return figures.lines_by_day(
        DAYS,
        [
            Series("Other jobs", "comparison", others, [formats.duration(v * 60) for v in others]),
            Series("Trials", "subject", trials, [formats.duration(v * 60) for v in trials]),
        ],
        suffix=" min",
        direct=True,
        limit=(40, "limit 40 min"),
    )


def _week(kind: str) -> dict[str, Any]:
    def busy(day: int, hour: int) -> float:
        office = day < 5 and 8 <= hour < 18
        if kind == "human":
            return 0.0125 if office else 0.0035 if day < 5 and hour > 17 else 0.0012
        return 0.007 + (0.004 if office and hour > 12 else 0) - (0.002 if hour < 9 else 0)

    return figures.hour_of_week([[busy(d, h) for h in range(24)] for d in range(7)], kind, top=0.0125)


def _queries() -> dict[str, Any]:
    return figures.dot_pairs(
        ["All users", "Under 100", "100 – 999", "1,000 – 9,999", "10,000 and up"],
        Series("Agents", "agent", [3.18, 2.41, 2.87, 3.32, 4.93]),
        Series("People", "human", [1.87, 2.05, 1.93, 1.12, 0.35]),
        guide=(2.0, "site guide 2.0"),
    )


def _columns() -> dict[str, Any]:
    ran = [round(v) for v in wave(5, 600, 1700)]
    return figures.stacked_columns(
        DAYS,
        [
            Series("Ran to an end", "agent", ran),
            Series("Cancelled", "agent", [round(v * 0.11) for v in ran], soft=True),
        ],
    )


def _ages() -> dict[str, Any]:
    edges = [60, 600, 3600, 21_600, 86_400, 259_200, 604_800, 1_209_600]
    return figures.cumulative(
        [
            Series("People", "human", [0.1, 0.4, 0.72, 0.9, 0.97, 0.99, 1, 1]),
            Series("Agents", "agent", [0.02, 0.05, 0.12, 0.2, 0.3, 0.42, 0.5, 1]),
        ],
        edges,
        ticks=[(60, "1 min"), (3600, "1 h"), (86_400, "1 d"), (604_800, "7 d")],
        telling=(648_000, 0.5, "half are older than 7.5 d"),
    )


FIGURES: dict[str, Callable[[], dict[str, Any]]] = {
    "by-day": _by_day,
    "waits": _waits,
    "week-agents": lambda: _week("agent"),
    "week-people": lambda: _week("human"),
    "queries": _queries,
    "columns": _columns,
    "ages": _ages,
}


def figure(request: HttpRequest, name: str) -> JsonResponse:
    """Send one sample figure."""
    _only_in_development()
    if name not in FIGURES:
        raise Http404
    return JsonResponse(FIGURES[name]())

"""The Overview: staff's picture of agents on the facility."""

from typing import Any

from django.http import Http404, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from portal.core import clock, exports
from portal.core.errors import NotFound
from portal.dashboard import figures, formats
from portal.dashboard.gpu_use import gpu_panel
from portal.dashboard.overview import parts, tables
from portal.dashboard.overview.scope import Asked, choices, read
from principals.web import PageRequest, page
from security import selectors as security_selectors
from security.models import Incident
from telemetry.models import Actor

INCIDENTS_SHOWN = 4
WEEK_SUB = (
    "Submissions by hour of the week, facility time, each as a share of its own week; one scale for both. The frame "
    "marks Monday to Friday, 08:00 to 18:00: {said}."
)
RUNTIME_TICKS = ((10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (21_600, "6 h"), (86_400, "1 d"))


@require_GET
@page
def overview(request: PageRequest) -> HttpResponseBase:
    """Show the facility's agents for a cluster and a period."""
    asked = read(request)
    if asked is None or not asked.readings.totals.people:
        return render(request, "overview/empty.html", {"asked": asked, **(choices(asked) if asked else {})})
    week = parts.week_words(asked)
    context = {
        "asked": asked,
        **choices(asked),
        "deck": parts.deck(asked),
        "kpis": parts.kpis(asked),
        "headline": parts.headline(asked),
        "share_rows": parts.share_rows(asked),
        "reference": asked.readings.shares[asked.definition].users.share(),
        "reference_label": f"{formats.percent(asked.readings.shares[asked.definition].users.share())} of people",
        "unknown": parts.unknown_words(asked),
        "week": week,
        "week_sub": WEEK_SUB.format(**week),
        "week_plots": _week_plots(asked, week),
        "week_numbers": _numbers(asked, "hour-of-week"),
        "days_src": _data_url(asked, "days", "figure"),
        "days_title": _days_title(asked),
        "days_numbers": _numbers(asked, "days"),
        "runtimes_src": _data_url(asked, "runtimes", "figure"),
        "runtimes_title": _runtimes_title(asked),
        "runtimes_numbers": _numbers(asked, "runtimes"),
        "harness_title": parts.harness_title(asked),
        "harness_rows": parts.harness_rows(asked),
        "harness_note": parts.harness_note(asked),
        "gpu_use": gpu_panel(asked.readings),
        "lab_title": parts.lab_title(asked),
        "lab_rows": parts.lab_rows(asked),
        "labs": asked.readings.labs,
        "exports": {
            name.replace("hour-of-week", "hours").replace("-", "_"): _exports(asked, name) for name in tables.TABLES
        },
        **_incidents(request),
        "now": clock.now(),
    }
    return render(request, "overview/overview.html", context)


def _incidents(request: PageRequest) -> dict[str, Any]:
    found = security_selectors.incidents(request.actor, security_selectors.IncidentFilter())
    return {
        "incidents": found[:INCIDENTS_SHOWN],
        "incident_count": found.count(),
        "overdue_count": (overdue := Incident.objects.visible_to(request.actor).past_their_time().count()),
        "overdue_words": f"{formats.count(overdue)} past {'its' if overdue == 1 else 'their'} time" if overdue else "",
    }


def _data_url(asked: Asked, name: str, kind: str) -> str:
    return f"{reverse('overview-data', args=[name, kind])}?{asked.query}"


def _exports(asked: Asked, name: str) -> list[dict[str, str]]:
    noun = name.replace("-", " ")
    return [{"name": kind.upper(), "url": _data_url(asked, name, kind), "noun": noun} for kind in exports.KINDS]


def _numbers(asked: Asked, name: str) -> dict[str, Any]:
    columns, rows = tables.TABLES[name](asked)
    return {
        "head": [column.replace("_", " ") for column in columns],
        "rows": [[_shown(row[column]) for column in columns] for row in rows],
    }


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return formats.percent(value) if 0 <= value <= 1 else formats.count(value)
    if isinstance(value, int):
        return formats.count(value)
    return formats.ABSENT if value is None else str(value)


def _week_plots(asked: Asked, week: dict[str, str]) -> list[dict[str, str]]:
    words = {
        kind: (whose, f"{share} fall outside working hours" if share != formats.ABSENT else "there is none yet")
        for kind, whose, share in (("agent", "agents’", week["agents"]), ("human", "people’s", week["people"]))
    }
    return [
        {
            "src": _data_url(asked, f"hour-of-week-{kind}", "figure"),
            "label": f"Heatmap of {whose} submissions by weekday and hour; {outside}.",
            "legend": kind,
        }
        for kind, (whose, outside) in words.items()
    ]


def _days_title(asked: Asked) -> str:
    days = [day.submissions for day in asked.readings.days if day.submissions.total]
    if not any(day.agent for day in days):
        return "No agent submitted a job in this period"
    more = sum(day.agent > day.human + day.unknown for day in days)
    return f"Agents submit more than everybody else {formats.on_days(more, len(days), 'with jobs')}"


def _runtimes_title(asked: Asked) -> str:
    agents = asked.readings.runtimes[Actor.AGENT].share_within(60)
    people = asked.readings.runtimes[Actor.HUMAN].share_within(60)
    if agents is None or people is None:
        return "How long jobs run"
    share, other = formats.percent(agents, 0), formats.percent(people, 0)
    return f"{share} of agents’ jobs are over within a minute, {other} of people’s"


@require_GET
@page
def data(request: PageRequest, name: str, kind: str) -> HttpResponseBase:
    """Answer one of the Overview's tables as CSV or JSON, or one of its figures for the browser to draw."""
    asked = read(request, strict=True)
    if asked is None:
        raise NotFound("No cluster has data yet.")
    if kind == "figure":
        return JsonResponse(_figure(asked, name))
    if name not in tables.TABLES:
        raise Http404
    columns, rows = tables.TABLES[name](asked)
    return exports.export(kind, f"{asked.scope.cluster.name}-{name}", columns, rows)


def _figure(asked: Asked, name: str) -> dict[str, Any]:
    if name == "days":
        return _days_figure(asked)
    if name == "runtimes":
        return _runtimes_figure(asked)
    if name.startswith("hour-of-week-"):
        return _week_figure(asked, name.removeprefix("hour-of-week-"))
    raise Http404


def _days_figure(asked: Asked) -> dict[str, Any]:
    days = asked.readings.days
    series = [
        figures.Series(
            label, kind, [day.submissions.of(kind) for day in days],
            urls=[asked.jobs_url(**{"from": f"{day.day}", "to": f"{day.day}", "actor": kind}) for day in days],
        )
        for label, kind in (("Agents", "agent"), ("People", "human"), ("Not attributed", "unknown"))
    ]  # fmt: skip
    return figures.lines_by_day([day.day for day in days], series)


def _runtimes_figure(asked: Asked) -> dict[str, Any]:
    curves = {kind: asked.readings.runtimes[kind].cumulative() for kind in ("agent", "human")}
    edges = [edge for edge, _ in curves["agent"] or curves["human"] if edge > 0]
    series = [
        figures.Series(label, kind, [share for edge, share in curves[kind] if edge > 0])
        for label, kind in (("Agents", "agent"), ("People", "human"))
        if curves[kind]
    ]
    return figures.cumulative(series, edges, ticks=RUNTIME_TICKS)


def _week_figure(asked: Asked, kind: str) -> dict[str, Any]:
    if kind not in {"agent", "human"}:
        raise Http404
    week = asked.readings.week
    top = max(max(map(max, week.shares(actor))) for actor in ("agent", "human"))
    return figures.hour_of_week(week.shares(kind), kind, top=top or 1.0)

"""What the page of one incident shows, as its template wants it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.core import clock
from portal.core.errors import DomainError
from principals import permissions
from principals.actors import Actor
from principals.web import PageRequest
from security import figures, selectors
from security.engine import incidents as rules
from security.models import Incident
from security.models.choices import State
from security.views import acts


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the incident's path."""

    title: str
    note: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """One of its clocks: what it measures, when it is due, when it was met."""

    label: str
    due: datetime
    met: datetime | None
    note: str


def deck(actor: Actor) -> SafeString:
    """Return the line under the heading: what is open, what is late, the month's exposed keys."""
    named = figures.FIGURES
    numbers = {name: named[name].read(actor) for name in named}
    links = {
        name: format_html('<a class="fig" href="{}">{}</a>', named[name].url(), f"{numbers[name]:,}")
        for name in numbers
    }
    return format_html(
        "{} open, {} past their time. This month {} exposed {} found; {} resolved.",
        links["open_incidents"], links["late_incidents"], links["keys_this_month"],
        "key was" if numbers["keys_this_month"] == 1 else "keys were", links["keys_resolved_this_month"],
    )  # fmt: skip


def context(request: PageRequest, incident: Incident, kept: str, refusal: DomainError | None = None) -> dict[str, Any]:
    """Return everything the detail needs; `kept` is the list's query, `refusal` why the act just tried failed."""
    actor = request.actor
    evidence, sightings = selectors.evidence_of(actor, incident), selectors.sightings_of(actor, incident)
    can_act = permissions.can(actor, "incident.act", incident)
    offered = acts.offered(request, incident, refusal) if can_act else []
    on_a_form = any(act.form and act.form.is_bound for act in offered) or request.POST.get("act") == "note"
    return {
        "incident": incident,
        "act_url": f"{incident.get_absolute_url()}{kept}",
        "first_step": rules.KINDS[rules.Kind(incident.kind)].first_step,
        "steps": _steps(incident),
        "clocks": _clocks(incident),
        "evidence": evidence,
        "reporter": f"reported by {evidence[0].source}" if evidence else "",
        "sightings": sightings,
        "why": "; ".join(selectors.reasons_of(incident, evidence, sightings)),
        "timeline": selectors.timeline_of(actor, incident, sightings),
        "acts": offered,
        "note": acts.note_form(request, refusal) if can_act else None,
        "refusal": None if on_a_form else refusal,
        "next_title": _next_title(incident),
        "is_mine": incident.assignee_id == request.user.pk,
        "session": next((each.session for each in evidence if each.session_id), None),
    }


def _next_title(incident: Incident) -> str:
    words = {State.NEW: "triage it", State.REOPENED: "triage it", State.TRIAGED: "contain it"}
    words |= {State.CONTAINED: "resolve it"}
    found = words.get(State(incident.state))
    return f"Next: {found}" if found else "Closed"


def _steps(incident: Incident) -> list[Step]:
    """Return new, triaged, contained and the end, with when each was reached or is due."""
    allowed, start = rules.CLOCKS[rules.Severity(incident.severity)], incident.clock_from
    path = (
        ("Reopened" if incident.reopened else "New", start, 0),
        ("Triaged", incident.triaged_at, allowed.triage_s),
        ("Contained", incident.contained_at, allowed.contain_s),
        ("Resolved" if incident.is_open else incident.get_state_display(), incident.closed_at, allowed.resolve_s),
    )
    current = max(index for index, (_, reached, _) in enumerate(path) if reached)
    due = "due {}" if incident.is_open else ""
    return [
        Step(
            title,
            _at(reached) if reached else due.format(_at(rules.due_at(start, span))),
            "current" if index == current else "past" if reached else "",
        )
        for index, (title, reached, span) in enumerate(path)
    ]


def _at(moment: datetime | None) -> str:
    """Return a moment in the facility's zone, without the date where it is today."""
    if moment is None:
        return ""
    zone = ZoneInfo(settings.FACILITY_TIME_ZONE)
    local, today = moment.astimezone(zone), clock.now().astimezone(zone)
    return f"{local:%H:%M}" if local.date() == today.date() else f"{local.day} {local:%b %H:%M}"


def _clocks(incident: Incident) -> list[Clock]:
    """Return first response, containment and resolution; an early closing meets what it made needless."""
    allowed, start, closed = rules.CLOCKS[rules.Severity(incident.severity)], incident.clock_from, incident.closed_at
    rows = (
        ("First response", allowed.triage_s, incident.triaged_at or closed),
        ("Contain", allowed.contain_s, incident.contained_at or closed),
        ("Resolve", allowed.resolve_s, closed),
    )
    return [Clock(label, rules.due_at(start, span), met, _clock_note(start, span, met)) for label, span, met in rows]


def _clock_note(start: datetime, span: int, met: datetime | None) -> str:
    return f"of {rules.format_span(span)}" if met else f"due {_at(rules.due_at(start, span))}"

"""What the page of one incident shows: evidence, where it was seen, why this severity, what happened."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Min

from principals.actors import Actor
from security.engine import incidents as rules
from security.models import Finding, Incident, IncidentEvent
from security.models.choices import Surface

MOST_SIGHTINGS, MOST_EVENTS, MOST_EVIDENCE = 50, 200, 3


@dataclass(frozen=True, slots=True)
class Sighting:
    """One place where it was seen, and how often."""

    surface: str
    host: str
    place: str
    readable_by: str
    count: int
    first: datetime
    last: datetime

    @property
    def surface_label(self) -> str:
        return Surface(self.surface).label


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the timeline."""

    at: datetime
    by: str  # agent, human or system, as the timeline draws it
    what: str
    note: str = ""


def evidence_of(actor: Actor, incident: Incident) -> list[Finding]:
    """Return the newest findings that tell something different, at most three."""
    findings = incident.findings.visible_to(actor).select_related("session", "agent")
    distinct: dict[str, Finding] = {}
    for finding in findings.order_by("-occurred", "-pk")[:MOST_SIGHTINGS]:
        distinct.setdefault(finding.evidence, finding)
    told = [finding for text, finding in distinct.items() if text]
    return (told or list(distinct.values()))[:MOST_EVIDENCE]


def sightings_of(actor: Actor, incident: Incident) -> list[Sighting]:
    """Return the places where it was seen, most often first, at most fifty."""
    places = ("surface", "host", "place", "readable_by")
    rows = (
        incident.findings.visible_to(actor)
        .order_by()
        .values(*places)
        .annotate(count=Count("pk"), first=Min("occurred"), last=Max("occurred"))
        .order_by("-count", "-last")[:MOST_SIGHTINGS]
    )
    return [Sighting(**row) for row in rows]


def reasons_of(incident: Incident, evidence: list[Finding], sightings: list[Sighting]) -> list[str]:
    """Return why an incident has its severity, in words that go on after "because": the kind's rule or the
    detector's word, what the detector adds, who could read it, how often it was seen.
    """
    kind = rules.KINDS[rules.Kind(incident.kind)]
    rated = next((each for each in evidence if each.is_rated and each.severity == incident.severity), None)
    if rated:
        reasons = [f"its detector, {rated.detector}, rates it so"]
    elif incident.severity == kind.severity.value:
        reasons = [f"every finding of the kind “{kind.label.lower()}” starts there"]
    else:
        reasons = ["an earlier finding was rated so"]
    for finding in evidence:
        reasons += [text for text in finding.reasons if text]
    readers = sorted({sighting.readable_by for sighting in sightings if sighting.readable_by})
    reasons += [f"readable by {reader}" for reader in readers[:3]]
    times = sum(sighting.count for sighting in sightings)
    if times > 1:
        reasons.append(f"seen {times} times in {len(sightings)} place" + ("s" if len(sightings) > 1 else ""))
    return list(dict.fromkeys(reasons))


def timeline_of(actor: Actor, incident: Incident, sightings: list[Sighting]) -> list[Entry]:
    """Return what happened, newest first: acts of people, and the first and last time each place was seen."""
    events = incident.events.visible_to(actor).order_by("-at", "-pk")[:MOST_EVENTS]
    entries = [_of_event(event) for event in events]
    for sighting in sightings:
        where = sighting.surface_label.lower()
        note = " · ".join(dict.fromkeys(part for part in (sighting.host, sighting.place) if part))
        entries.append(Entry(sighting.first, "system", f"Found in {where}", note))
        if sighting.last != sighting.first:
            again = f"Seen again in {where}, {sighting.count} times so far"
            entries.append(Entry(sighting.last, "system", again, note))
    return sorted(entries, key=lambda entry: entry.at, reverse=True)


def _of_event(event: IncidentEvent) -> Entry:
    who = event.actor_label
    kinds = IncidentEvent.Kind
    words = {
        kinds.OPENED: f"{who} opened it",
        kinds.MOVED: f"{who} moved it from {_state(event.old)} to {_state(event.new)}",
        kinds.RAISED: f"Severity raised from {event.old} to {event.new}",
        kinds.ASSIGNED: f"{who} gave it to {event.new or 'nobody'}" if event.new != who else f"{who} took it",
        kinds.NOTE: f"{who} noted",
        kinds.HELD: f"{who} held {event.new}; its tokens answer 403",
        kinds.RELEASED: f"{who} let the agent go ({event.new})",
    }
    by = "human" if event.actor_kind == "user" else "system"
    return Entry(event.at, by, words[kinds(event.kind)], event.text)


def _state(value: str) -> str:
    return value.replace("_", " ")

"""What detectors told of over a period, and how incidents stood at the end of it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from security.models import Finding, Incident, IncidentEvent
from security.models.choices import OPEN, Kind, State
from telemetry.selectors import Scope

Person = str


@dataclass(slots=True)
class Found:
    """Some findings: how many, of which incidents, of which keys, about whom as far as that is known."""

    findings: int = 0
    incidents: set[int] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)  # fingerprints; of a finding without one its incident
    unknown: set[str] = field(default_factory=set)  # those keys of which nobody is known whose they are
    people: set[Person] = field(default_factory=set)


def has_any(scope: Scope, *kinds: Kind) -> bool:
    """Say whether a detector ever told of such a thing on the cluster: else its silence means nothing."""
    return Finding.objects.filter(cluster=scope.cluster, kind__in=kinds).exists()


def found_in(scope: Scope, *kinds: Kind, by: str) -> dict[str, Found]:
    """Return what was seen in the period by a column of findings, false alarms left out; under "" all of it."""
    findings = Finding.objects.visible_to(scope.actor).filter(
        cluster=scope.cluster, kind__in=kinds, occurred__gte=scope.period.starts, occurred__lt=scope.period.ends
    )
    found: dict[str, Found] = defaultdict(Found)
    wanted = findings.exclude(incident__state=State.FALSE_ALARM)
    names = (by, "incident_id", "fingerprint", "cluster_user_id", "cluster_user__user_id", "agent__owner_id")
    for group, incident, fingerprint, login, user, owner in wanted.values_list(*names).iterator():
        key, person = fingerprint or f"incident:{incident}", _person(login, user, owner)
        for one in (found[group], found[""]):
            one.findings += 1
            one.incidents.add(incident)
            one.keys.add(key)
            if person:
                one.people.add(person)
            else:
                one.unknown.add(key)
    return found


def _person(login: int | None, user: int | None, owner: int | None) -> Person:
    """Return whom it is about: a person, else a login name; "" where nobody knows."""
    if user or owner:
        return f"user:{user or owner}"
    return f"login:{login}" if login else ""


def unresolved(scope: Scope, kind: Kind, *, at: datetime, older_than: timedelta) -> Found:
    """Return the incidents of a kind that were open at an instant, and had been since before so long.

    How they stood is read from what happened to them until then: what was done later changes nothing.
    """
    incidents = Incident.objects.visible_to(scope.actor).filter(
        cluster=scope.cluster, kind=kind, opened__lte=at - older_than
    )
    moves = IncidentEvent.objects.filter(
        incident__in=incidents.values("pk"), kind__in=(IncidentEvent.Kind.OPENED, IncidentEvent.Kind.MOVED), at__lte=at
    )
    history = moves.order_by("incident_id", "at", "pk").values_list("incident_id", "at", "new")
    waiting = {pk for pk, since in _open_since(history) if since <= at - older_than}
    found = Found()
    names = ("pk", "fingerprint", "cluster_user_id", "cluster_user__user_id", "agent__owner_id")
    for pk, fingerprint, login, user, owner in incidents.filter(pk__in=waiting).values_list(*names):
        key, person = fingerprint or f"incident:{pk}", _person(login, user, owner)
        found.incidents.add(pk)
        found.keys.add(key)
        if person:
            found.people.add(person)
        else:
            found.unknown.add(key)
    return found


def _open_since(history: Iterable[tuple[int, datetime, str]]) -> Iterator[tuple[int, datetime]]:
    """Yield the incidents that were open at the end of their history, each with the instant since when."""
    since: dict[int, datetime | None] = {}
    for pk, at, state in history:
        since[pk] = None if state not in OPEN else since.get(pk) or at
    yield from ((pk, at) for pk, at in since.items() if at is not None)

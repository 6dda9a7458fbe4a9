"""The audit trail as somebody may see it, narrowed by an address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Q, QuerySet

from portal.core import clock
from portal.core.models import AuditEvent
from principals.actors import Actor
from principals.models import Lab

_LONGEST = 150


def visible_to(actor: Actor) -> QuerySet[AuditEvent]:
    """Return what `actor` may see: facility roles all; others what concerns labs they manage, and their own acts.

    What an agent did is its owner's too. Agents and services see nothing.
    """
    events = AuditEvent.objects.all()
    if not actor.is_person or actor.user is None:
        return events.none()
    if actor.sees_facility:
        return events
    own = Q(actor_kind="user", actor_id=str(actor.user.pk)) | Q(on_behalf_of=actor.user.username)
    return events.filter(own | Q(lab_id__in=actor.managed_lab_ids))


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What the list is narrowed to. Days are of the facility's zone, both included."""

    who: str = ""
    verb: str = ""
    kind: str = ""
    object: str = ""
    lab: str = ""
    first: date | None = None
    last: date | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "AuditFilter":
        """Read a filter. Errors: `Invalid` for a day that is none."""
        names = {"who": "actor", "verb": "verb", "kind": "kind", "object": "object", "lab": "lab"}
        texts = {name: query.get(param, "").strip()[:_LONGEST] for name, param in names.items()}
        return cls(**texts, first=_day(query.get("from", "")), last=_day(query.get("to", "")))

    @property
    def is_empty(self) -> bool:
        return self == AuditFilter()

    def apply(self, events: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        """Narrow events."""
        if self.who:
            events = events.filter(Q(actor_label=self.who) | Q(on_behalf_of=self.who))
        if self.verb:
            events = events.filter(Q(verb=self.verb) | Q(verb__startswith=f"{self.verb}."))
        if self.kind:
            events = events.filter(object_kind=self.kind)
        if self.object:
            events = events.filter(Q(object_id=self.object) | Q(object_label=self.object))
        if self.lab:
            events = events.filter(lab_id__in=list(Lab.objects.filter(name=self.lab).values_list("pk", flat=True)))
        if self.first:
            events = events.filter(at__gte=_midnight(self.first))
        return events.filter(at__lt=_midnight(self.last + timedelta(days=1))) if self.last else events


def _day(text: str) -> date | None:
    return clock.read_day(text.strip()) if text.strip() else None


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(settings.FACILITY_TIME_ZONE))

"""Figures of `security`, each with its definition, population, unit and the rows behind it."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from portal.core import clock
from principals.actors import Actor
from security.models import Incident
from security.models.choices import Kind, State
from security.selectors.listing import month_start


@dataclass(frozen=True, slots=True)
class Figure:
    """A named number: what it counts, of what, in which unit, how it is read and where its rows are."""

    name: str
    label: str
    definition: str
    population: str
    unit: str
    read: Callable[[Actor], int]
    query: tuple[tuple[str, str], ...]

    def url(self) -> str:
        """Return the address of the rows behind it."""
        return f"{reverse('incidents')}?{urlencode(self.query)}"


def open_incidents(actor: Actor) -> int:
    """Count the open incidents an actor may see."""
    return Incident.objects.visible_to(actor).open().count()


def late_incidents(actor: Actor) -> int:
    """Count the open incidents whose next step is past its time."""
    return Incident.objects.visible_to(actor).past_their_time().count()


def waiting(actor: Actor) -> tuple[int, int]:
    """Return how many incidents an actor may see are open, and how many of them late, in one query."""
    late = Count("pk", filter=Q(due_at__lt=clock.now()))
    found = Incident.objects.visible_to(actor).open().order_by().aggregate(open=Count("pk"), late=late)
    return found["open"], found["late"]


def keys_this_month(actor: Actor) -> int:
    """Count the exposed keys whose incident opened this month."""
    return _keys(actor).count()


def keys_resolved_this_month(actor: Actor) -> int:
    """Count those of them that are resolved."""
    return _keys(actor).filter(state=State.RESOLVED).count()


def _keys(actor: Actor) -> QuerySet[Incident]:
    return Incident.objects.visible_to(actor).filter(kind=Kind.EXPOSED_SECRET, opened__gte=month_start())


def by_kind(actor: Actor) -> dict[str, int]:
    """Return the open incidents an actor may see by kind; every kind is there, with 0 where there is none."""
    rows = Incident.objects.visible_to(actor).open().order_by().values_list("kind").annotate(count=Count("pk"))
    found: dict[str, int] = dict(rows)
    return {kind: found.get(kind, 0) for kind in Kind.values}


_VISIBLE = "incidents the viewer may see"
FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "open_incidents", "Open incidents", "Incidents that are new, triaged, contained or reopened.",
            _VISIBLE, "incidents", open_incidents, (("state", "open"),),
        ),
        Figure(
            "late_incidents", "Past their time", "Open incidents whose next step was due before now.",
            _VISIBLE, "incidents", late_incidents, (("state", "open"), ("late", "1")),
        ),
        Figure(
            "keys_this_month", "Exposed keys this month",
            "Incidents of the kind exposed key that opened in this calendar month (UTC); one key is one incident for "
            "each agent or login name, however often it was seen.",
            _VISIBLE, "incidents", keys_this_month,
            (("state", "all"), ("kind", Kind.EXPOSED_SECRET), ("month", "this")),
        ),
        Figure(
            "keys_resolved_this_month", "Of these resolved",
            "Those of them that are resolved: their owner revoked the key and InfoSec agreed.",
            _VISIBLE, "incidents", keys_resolved_this_month,
            (("state", State.RESOLVED), ("kind", Kind.EXPOSED_SECRET), ("month", "this")),
        ),
    )
}  # fmt: skip

"""Figures of `memory`, each with its definition, population, unit and the rows behind it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q
from django.urls import reverse

from memory.models import Lesson, LessonLookup
from memory.models.choices import Scope, Status
from portal.core import clock
from principals.actors import Actor


@dataclass(frozen=True, slots=True)
class Figure:
    """A named number: what it counts, of what, in which unit, how it is read and where its rows are.

    `read` gives None where this viewer is not told: look-ups are counted for the facility alone.
    """

    name: str
    label: str
    definition: str
    population: str
    unit: str
    read: Callable[[Actor], int | None]
    query: str = ""

    def url(self) -> str:
        """Return the address of the rows behind it; empty where no row is kept that could be shown."""
        return f"{reverse('lessons')}?{self.query}" if self.query else ""


def month_start() -> datetime:
    """Return the start of this calendar month, UTC."""
    return clock.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def by_scope(actor: Actor) -> dict[str, int]:
    """Return the lessons in force by scope; of other labs' the whole facility's lookers get the number alone."""
    lessons = Lesson.objects.all() if actor.sees_facility else Lesson.objects.visible_to(actor)
    rows = lessons.filter(status=Status.ACTIVE).order_by().values_list("scope").annotate(count=Count("pk"))
    found: dict[str, int] = dict(rows)
    return {scope: found.get(scope, 0) for scope in Scope.values}


def lookups_this_month(actor: Actor) -> tuple[int, int] | None:
    """Return how often lessons were looked up this month and how often one fitted; None for whom it is not."""
    if not actor.sees_facility:
        return None
    asked = LessonLookup.objects.filter(at__gte=month_start())
    counts = asked.aggregate(asked=Count("pk"), found=Count("pk", filter=Q(found=True)))
    return counts["asked"], counts["found"]


def _in_scope(scope: str) -> Callable[[Actor], int | None]:
    return lambda actor: by_scope(actor)[scope]


def _of_lookups(place: int) -> Callable[[Actor], int | None]:
    def read(actor: Actor) -> int | None:
        counts = lookups_this_month(actor)
        return counts[place] if counts else None

    return read


_READABLE = "lessons the viewer may read; for those who look at the whole facility, all"
_ASKED = "look-ups by page and API, of people and agents"
FIGURES = {
    figure.name: figure
    for figure in (
        *(
            Figure(
                f"lessons_{scope}", f"Lessons, {Scope(scope).label.lower()}",
                f"Lessons in force in {scope} scope.", _READABLE, "lessons", _in_scope(scope), f"scope={scope}",
            )
            for scope in Scope.values
        ),
        Figure(
            "lessons_asked", "Looked up this month", "Look-ups of an error text in this calendar month (UTC).",
            _ASKED, "look-ups", _of_lookups(0),
        ),
        Figure(
            "lessons_found", "Of these found", "Those of them for which at least one lesson fitted.",
            _ASKED, "look-ups", _of_lookups(1),
        ),
    )
}  # fmt: skip

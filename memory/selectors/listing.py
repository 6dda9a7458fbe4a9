"""The list of lessons somebody may read, and those that wait for their word."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from django.db.models import Q

from memory.models import Lesson
from memory.models.choices import Scope, Status
from memory.models.lessons import LessonQuerySet
from portal.core.errors import NotFound
from principals.actors import Actor

_PUBLIC_ID = re.compile(r"l_[0-9a-f]{12}\Z", re.ASCII)
SORTS = {"-created": ("-created", "-pk"), "created": ("created", "pk")}


@dataclass(frozen=True, slots=True)
class LessonFilter:
    """What the list shows: scope, a lab by name, status and order; anything unknown is as if it were not said."""

    scope: str = ""
    lab: str = ""
    status: str = Status.ACTIVE
    sort: str = "-created"

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Read the filters of an address."""
        scope, status, sort = query.get("scope", ""), query.get("status", ""), query.get("sort", "")
        return cls(
            scope=scope if scope in Scope.values else "",
            lab=query.get("lab", "")[:64],
            status=status if status in Status.values or status == "all" else Status.ACTIVE,
            sort=sort if sort in SORTS else "-created",
        )


def lessons(actor: Actor, asked: LessonFilter) -> LessonQuerySet:
    """Return the lessons an actor may read that fit a filter."""
    found = Lesson.objects.visible_to(actor).with_evidence().select_related("owner", "lab", "cluster")
    if asked.scope:
        found = found.filter(scope=asked.scope)
    if asked.lab:
        found = found.filter(lab__name=asked.lab)
    if asked.status != "all":
        found = found.filter(status=asked.status)
    return found.order_by(*SORTS[asked.sort])


def lessons_to_approve(actor: Actor) -> LessonQuerySet:
    """Return the proposals that wait for this person: their labs' as PI or manager, the clusters' as staff."""
    if not actor.is_person:
        return Lesson.objects.none()
    decides = Q(scope=Scope.LAB, lab__in=actor.managed_lab_ids)
    if actor.is_research_computing:
        decides |= Q(scope=Scope.CLUSTER)
    waiting = Lesson.objects.waiting().filter(decides)
    return waiting.select_related("lab", "cluster", "derived_from").order_by("created", "pk")


def find_lesson(actor: Actor, public_id: str) -> Lesson:
    """Return a lesson somebody may read, with its counts of evidence. Errors: `NotFound`."""
    visible = Lesson.objects.visible_to(actor).with_evidence()
    visible = visible.select_related("owner", "lab", "cluster", "source_lab", "derived_from", "author_agent")
    found = visible.filter(public_id=public_id).first() if _PUBLIC_ID.match(public_id) else None
    if found is None:
        raise NotFound(
            "There is no such lesson, or none you may read.", code="lesson_not_found",
            remedy="Look lessons up by the text of an error.",
        )  # fmt: skip
    return found

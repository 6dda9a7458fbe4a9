"""The lessons' page: search first, then what waits for the viewer's word, then every lesson they may read."""

from collections.abc import Iterator
from typing import Any

from django.core.paginator import Paginator
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from memory import figures, permissions, selectors
from memory import services as memory_services
from memory.models import Lesson
from memory.models.choices import Scope, Status
from memory.models.lessons import LessonQuerySet
from memory.selectors import FoundLesson, LessonFilter
from memory.services.rows import condition_texts
from portal.core.exports import export
from principals.actors import Actor
from principals.models import Lab
from principals.web import PageRequest, page

PAGE_SIZE = 25
MAX_QUERY = 4000  # characters of an error in an address
EXPORTED = 10_000
WAITING_SHOWN = 20
COLUMNS = (
    "id", "scope", "lab", "cluster", "status", "error", "cause", "fix", "check", "conditions", "source",
    "confirmations", "refutations", "author", "created",
)  # fmt: skip


@require_safe
@page
def lessons(request: PageRequest) -> HttpResponseBase:
    """Look an error up (`?q=`), or list lessons; `?format=csv|json` exports what is listed."""
    asked = LessonFilter.read(request.GET)
    listed = selectors.lessons(request.actor, asked)
    if kind := request.GET.get("format"):
        return export(kind, "lessons", COLUMNS, _exported(request, listed))
    text = request.GET.get("q", "").strip()[:MAX_QUERY]
    # Renewing the list below a search is not another look-up.
    again = getattr(request, "htmx", False)
    find = selectors.look_up if again else _look_up
    found = find(request.actor, text) if text else []
    waiting = selectors.lessons_to_approve(request.actor)
    context = {
        "text": text,
        "max_query": MAX_QUERY,
        "found": found,
        "waiting": waiting[:WAITING_SHOWN],
        "waiting_count": waiting.count(),
        "page": Paginator(listed, PAGE_SIZE).get_page(request.GET.get("page")),
        "none_at_all": not Lesson.objects.visible_to(request.actor).exists(),
        **_choices(request, asked),
        **_month(request),
    }
    return render(request, "memory/lessons.html", context)


def _look_up(actor: Actor, text: str) -> list[FoundLesson]:
    return memory_services.look_up(actor=actor, text=text)


def _choices(request: PageRequest, asked: LessonFilter) -> dict[str, Any]:
    labs = Lab.objects.filter(pk__in=request.actor.member_lab_ids).values_list("name", "title")
    return {
        "asked": asked,
        "scopes": [("", "All"), *Scope.choices],
        "statuses": [*Status.choices, ("all", "Any")],
        "labs": [("", "All labs"), *labs] if len(labs) > 1 else [],
    }


def _month(request: PageRequest) -> dict[str, Any]:
    counts = figures.lookups_this_month(request.actor)
    return {"asked_this_month": counts[0], "found_this_month": counts[1]} if counts else {}


def _exported(request: PageRequest, listed: LessonQuerySet) -> Iterator[dict[str, Any]]:
    for each in listed[:EXPORTED].iterator(chunk_size=500):
        yield {
            "id": each.public_id,
            "scope": each.scope,
            "lab": each.lab.name if each.lab else None,
            "cluster": each.cluster.name if each.cluster else None,
            "status": each.status,
            "error": each.error_text,
            "cause": each.cause,
            "fix": each.fix,
            "check": each.check_words,
            "conditions": "; ".join(condition_texts(each.conditions)),
            "source": each.source,
            "confirmations": each.confirmations,
            "refutations": each.refutations,
            "author": each.author_label if permissions.can(request.actor, "lesson.see_names", each) else None,
            "created": each.created,
        }

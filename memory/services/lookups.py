"""Looking lessons up, counted without the text."""

from memory import selectors
from memory.engine.match import MAX_MATCHES
from memory.engine.signature import exact_signature
from memory.models import LessonLookup
from memory.selectors import FoundLesson
from portal.core import clock
from principals.actors import Actor
from principals.models import Cluster


def look_up(*, actor: Actor, text: str, cluster: Cluster | None = None, limit: int = MAX_MATCHES) -> list[FoundLesson]:
    """Return the lessons that fit an error, best first, and note that somebody asked; none means unknown."""
    found = selectors.look_up(actor, text, cluster=cluster, limit=limit)
    LessonLookup.objects.create(signature=exact_signature(text), found=bool(found), actor_kind=actor.ref.kind)
    return found


def prune_lookups() -> int:
    """Delete look-ups past their keeping time; return how many."""
    deleted, _ = LessonLookup.objects.filter(at__lt=clock.now() - LessonLookup.KEPT).delete()
    return deleted

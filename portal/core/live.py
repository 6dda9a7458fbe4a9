"""The outbox of live events: written with the change they tell of, numbered after commit, read by a tail a process."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import connection, transaction
from django.db.models import Exists, Min, OuterRef

from portal.core import clock
from portal.core.models import Counter, LiveEvent, LiveEventTopic
from portal.core.rows import create_rows

SEQUENCE = "live"
NUMBER_CHUNK = 2000
PRUNE_CHUNK = 1000
KEPT_DAYS = 7
# History and back-fill are no news (DESIGN, "How data flows").
NEWS_MAX_AGE = timedelta(minutes=15)
NUDGE_GROUP = "live.nudge"
# One statement, whatever the number: rows named one by one cost the sequencer more than all else it does.
_NUMBER = """
UPDATE core_liveevent SET seq = placed.seq
FROM (SELECT id AS pk, %s + row_number() OVER (ORDER BY id) AS seq FROM core_liveevent WHERE seq IS NULL
      ORDER BY id LIMIT %s) AS placed
WHERE core_liveevent.id = placed.pk
"""
# Told by whoever changes a role, a token or a hold: every process then checks at once who may still listen.
PERMISSIONS_CHANGED = "permissions.changed"


@dataclass(frozen=True, slots=True)
class News:
    """What is to be told: a name (`job.ended`), who may hear it (topics), and the facts."""

    name: str
    topics: tuple[str, ...]
    payload: dict[str, Any] = field(default_factory=dict)
    at: datetime = field(default_factory=clock.now)


def is_news(at: datetime) -> bool:
    """Say whether something that happened at `at` is recent enough to be told."""
    return clock.now() - at <= NEWS_MAX_AGE


def announce(news: Iterable[News]) -> int:
    """Write live events in the caller's transaction; after commit nudge the tails. Return how many were written."""
    items = list(news)
    if not items:
        return 0
    events = create_rows(
        LiveEvent,
        (LiveEvent(at=item.at, name=item.name, payload=item.payload, topics=list(item.topics)) for item in items),
    )
    LiveEventTopic.objects.bulk_create(
        LiveEventTopic(event=event, topic=topic) for event in events for topic in event.topics
    )
    transaction.on_commit(nudge, robust=True)
    return len(events)


def nudge() -> None:
    """Wake the tails. A lost nudge costs at most one poll interval: events are read from the table."""
    layer = get_channel_layer()
    if layer is not None:
        async_to_sync(layer.group_send)(NUDGE_GROUP, {"type": "live.nudge"})


def number_committed(*, limit: int = NUMBER_CHUNK) -> int:
    """Give the next positions to committed rows that have none; return how many. The counter's row is the lock."""
    if not LiveEvent.objects.filter(seq=None).exists():
        return 0
    with transaction.atomic():
        Counter.objects.get_or_create(name=SEQUENCE)
        counter = Counter.objects.select_for_update().get(name=SEQUENCE)
        with connection.cursor() as cursor:
            cursor.execute(_NUMBER, [counter.value, limit])
            numbered: int = cursor.rowcount
        Counter.objects.filter(name=SEQUENCE).update(value=counter.value + numbered)
    return numbered


def newest_seq() -> int:
    """Return the position of the newest numbered event, 0 where there is none."""
    counter = Counter.objects.filter(name=SEQUENCE).first()
    return counter.value if counter else 0


def committed_seq() -> int:
    """Return the position that the newest committed event has or is about to get.

    Where nobody listened for a while, events wait for their number; what a page shows holds them already.
    """
    return newest_seq() + LiveEvent.objects.filter(seq=None).count()


def oldest_kept_seq() -> int:
    """Return the lowest position still kept; a cursor more than one below it must resync."""
    return LiveEvent.objects.exclude(seq=None).aggregate(low=Min("seq"))["low"] or newest_seq() + 1


def after(cursor: int, *, topics: Iterable[str] | None = None, limit: int = 200) -> list[LiveEvent]:
    """Return events past `cursor` in order; only those of `topics` where given (an empty set gives none)."""
    events = LiveEvent.objects.filter(seq__gt=cursor).order_by("seq")
    if topics is not None:
        # Asked row by row from the cursor on: a list of all a topic ever had would cost its week, not the gap.
        wanted = LiveEventTopic.objects.filter(event_id=OuterRef("pk"), topic__in=list(topics))
        events = events.filter(Exists(wanted))
    return list(events[:limit])


def prune() -> int:
    """Delete the oldest events, up to the first that is within its keeping time; return how many.

    What is deleted is always the start of the sequence: a cursor past `oldest_kept_seq` has missed nothing.
    """
    numbered = LiveEvent.objects.exclude(seq=None)
    kept = numbered.filter(at__gte=clock.now() - timedelta(days=KEPT_DAYS)).aggregate(low=Min("seq"))["low"]
    past = numbered.filter(seq__lt=newest_seq() + 1 if kept is None else kept).order_by("seq")
    total = 0
    while ids := list(past.values_list("pk", flat=True)[:PRUNE_CHUNK]):
        with transaction.atomic():
            LiveEventTopic.objects.filter(event_id__in=ids).delete()
            LiveEvent.objects.filter(pk__in=ids).delete()
        total += len(ids)
    return total

"""The life of a delivery: put up from the stream, claimed for an attempt, settled by what came of it.

One conditional update decides each step, so that a sender that was killed, or woke up late, changes nothing twice.
"""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from portal.core import audit, clock, live
from portal.core.actors import SYSTEM
from portal.core.errors import DomainError
from portal.core.models import LiveEvent
from portal.realtime.stream import Event
from portal.webhooks import pace
from portal.webhooks.models import Delivery, Webhook
from portal.webhooks.posting import Answer
from principals import services as principal_services

MAX_EVENTS: Final = 100
MAX_BYTES: Final = 256 * 1024  # of a body with more than one event
LEASE: Final = timedelta(seconds=20)  # an attempt takes five
POSTPONED: Final = timedelta(minutes=1)
SLOW_S: Final = 1.0
# A cursor that found nothing is moved this far at once: a write for every look would cost more than looking again.
STRIDE: Final = 500
MOST_DEAD: Final = 3
SWITCHED_OFF: Final = "webhook.switched_off"
_OPEN = Delivery.State.OPEN
_GONE = 410  # RFC 9110, 15.5.11


def put_up(*, newest: int) -> int:
    """Make the next delivery of every webhook that has news and waits for none; return how many were made."""
    waiting = Delivery.objects.filter(webhook=OuterRef("pk"), state=_OPEN, is_again=False)
    in_stream = waiting.exclude(kind=Delivery.Kind.PING)
    behind = Webhook.objects.filter(~Q(cursor=newest), ~Exists(in_stream), state=Webhook.State.ON)
    found = list(behind)
    oldest = live.oldest_kept_seq() if found else 0
    return sum(_put_up_one(webhook, oldest, newest) for webhook in found)


def _put_up_one(webhook: Webhook, oldest: int, newest: int) -> bool:
    if not oldest - 1 <= webhook.cursor <= newest:
        return _advance(webhook, newest, kind=Delivery.Kind.RESYNC, first=newest, last=newest)
    found = [row for row in live.after(webhook.cursor, topics=webhook.topics, limit=MAX_EVENTS) if _seq(row) <= newest]
    rows = _within_bytes(found)
    if rows:
        upto = newest if len(rows) == len(found) < MAX_EVENTS else _seq(rows[-1])
        return _advance(webhook, upto, first=_seq(rows[0]), last=_seq(rows[-1]), events=len(rows))
    if newest - webhook.cursor >= STRIDE:
        Webhook.objects.filter(pk=webhook.pk, cursor=webhook.cursor).update(cursor=newest)
    return False


def _advance(webhook: Webhook, upto: int, *, kind: str = Delivery.Kind.EVENTS, **span: int) -> bool:
    try:
        with transaction.atomic():
            ours = Webhook.objects.filter(pk=webhook.pk, cursor=webhook.cursor, state=Webhook.State.ON)
            if not ours.update(cursor=upto):
                return False
            Delivery.objects.create(webhook=webhook, kind=kind, topics=webhook.topics, **span)
    except IntegrityError:  # another sender made one
        return False
    return True


def _within_bytes(rows: list[LiveEvent]) -> list[LiveEvent]:
    """Return the rows that fit one body, at least one."""
    used = 0
    for number, row in enumerate(rows):
        used += len(json.dumps(row.payload)) + 300
        if used > MAX_BYTES and number:
            return rows[:number]
    return rows


def due(*, slow: bool, limit: int, but: Iterable[int]) -> list[Delivery]:
    """Return deliveries whose time has come and that nobody sends, longest due first.

    Those of slow webhooks, or of the others; of none in `but`.
    """
    now = clock.now()
    free = Q(leased_until=None) | Q(leased_until__lt=now)
    found = Delivery.objects.filter(free, state=_OPEN, next_at__lte=now, webhook__state=Webhook.State.ON)
    found = found.filter(webhook__is_slow=slow).exclude(webhook__in=list(but))
    return list(found.select_related("webhook__owner").order_by("next_at", "pk")[:limit])


def body_of(delivery: Delivery, topics: list[str]) -> bytes | None:
    """Return the text of a delivery, the same at each attempt; None where its events are kept no more."""
    data: dict[str, Any] = {}
    if delivery.kind == Delivery.Kind.EVENTS:
        if live.oldest_kept_seq() > delivery.first:
            return None
        rows = live.after(delivery.first - 1, topics=topics, limit=MAX_EVENTS)
        data["events"] = [Event.of(row).as_dict(topics) for row in rows if _seq(row) <= delivery.last]
    if delivery.kind != Delivery.Kind.PING:
        data["next"] = delivery.last
    body = {"type": f"gatehouse.{delivery.kind}", "timestamp": clock.written(delivery.created), "data": data}
    return json.dumps(body, separators=(",", ":")).encode()


def turn_into_resync(delivery: Delivery) -> None:
    """Let a delivery whose events are gone say so instead."""
    kind = Delivery.Kind.RESYNC
    Delivery.objects.filter(pk=delivery.pk, state=_OPEN).update(kind=kind, first=F("last"), events=0)
    delivery.kind, delivery.first, delivery.events = kind, delivery.last, 0


def postpone(delivery: Delivery) -> None:
    """Leave a delivery that could not be made for a while."""
    Delivery.objects.filter(pk=delivery.pk, state=_OPEN).update(next_at=clock.now() + POSTPONED)


def claim(delivery: Delivery) -> datetime | None:
    """Take a delivery for one attempt; return our lease, or None where somebody else was first."""
    now = clock.now()
    free = Q(leased_until=None) | Q(leased_until__lt=now)
    same = Delivery.objects.filter(free, pk=delivery.pk, state=_OPEN, attempts=delivery.attempts)
    taken = same.update(attempts=F("attempts") + 1, leased_until=now + LEASE, tried=now)
    return now + LEASE if taken else None


def settle(delivery_id: int, lease: datetime, answer: Answer) -> None:
    """Note what came of an attempt, where it still is ours to say."""
    with transaction.atomic():
        ours = Delivery.objects.filter(pk=delivery_id, state=_OPEN, leased_until=lease)
        delivery = ours.select_related("webhook").first()
        if delivery is None:
            return
        told: dict[str, Any] = {
            "leased_until": None, "status": answer.status, "words": answer.words[:200],
            "took_ms": round(answer.took_s * 1000),
        }  # fmt: skip
        moved = _next_state(delivery, answer)
        if not ours.update(**told, **moved):
            return
        if moved.get("state") == Delivery.State.DEAD:
            _tell_owner(delivery.webhook, f"was not reached in {pace.ATTEMPTS} tries", answer.words, delivery.public_id)
        _note_on_webhook(delivery, answer)


def _next_state(delivery: Delivery, answer: Answer) -> dict[str, Any]:
    now = clock.now()
    if answer.is_taken:
        return {"state": Delivery.State.DELIVERED, "ended": now}
    if delivery.kind == Delivery.Kind.PING:
        return {"state": Delivery.State.FAILED, "ended": now}
    if answer.status == _GONE:  # kept for the day it is switched on again
        return {"attempts": 0, "next_at": now}
    wait = pace.wait_after(delivery.attempts, asked_s=answer.retry_after_s)
    return {"next_at": now + wait} if wait else {"state": Delivery.State.DEAD, "ended": now}


def _note_on_webhook(delivery: Delivery, answer: Answer) -> None:
    row = Webhook.objects.filter(pk=delivery.webhook_id)
    slow = not answer.is_taken or answer.took_s > SLOW_S
    row.exclude(is_slow=slow).update(is_slow=slow)
    if answer.is_taken:
        row.exclude(dead_in_a_row=0).update(dead_in_a_row=0)
    elif answer.status == _GONE:
        words = "The receiver answered 410: it is gone for good. Change the address, or delete this webhook."
        switch_off(delivery.webhook, code="receiver_gone", words=words)
    elif pace.wait_after(delivery.attempts) is None and delivery.kind != Delivery.Kind.PING:
        _count_dead(delivery.webhook)


def _count_dead(webhook: Webhook) -> None:
    row = Webhook.objects.filter(pk=webhook.pk)
    row.update(dead_in_a_row=F("dead_in_a_row") + 1)
    if row.filter(dead_in_a_row__gte=MOST_DEAD).exists():
        words = (
            f"{MOST_DEAD} deliveries in a row were tried {pace.ATTEMPTS} times each, in vain. Mend the receiver, "
            "switch the webhook on again, then send the dead letters again."
        )
        switch_off(webhook, code="receiver_fails", words=words)


def switch_off_for(webhook: Webhook, error: DomainError) -> None:
    """Switch a webhook off because nothing may be sent for it any more."""
    switch_off(webhook, code=error.code, words=error.words)


def switch_off(webhook: Webhook, *, code: str, words: str) -> None:
    """Switch a webhook off with its reason, by itself; what waits for it waits on. Its owner is told."""
    with transaction.atomic():
        on = Webhook.objects.filter(pk=webhook.pk, state=Webhook.State.ON)
        off = {"state": Webhook.State.OFF, "off_code": code[:40], "off_words": words[:500]}
        if not on.update(**off, state_changed=clock.now()):
            return
        audit.record(
            actor=SYSTEM, verb="webhook.switch_off", object_kind="webhook", object_id=webhook.public_id,
            object_label=webhook.name, after={"state": "off", "code": code}, reason=words,
        )  # fmt: skip
        payload = {"webhook": webhook.public_id, "code": code}
        live.announce([live.News(SWITCHED_OFF, (f"user:{webhook.owner_id}",), payload)])
        _tell_owner(webhook, "was switched off", words, f"off:{webhook.public_id}:{clock.now_s()}")


def _tell_owner(webhook: Webhook, what: str, words: str, key: str) -> None:
    """Tell its owner, for whom the webhook itself is no way."""
    principal_services.notify(
        people=[webhook.owner_id], kind="webhook_dead", key=f"webhook_dead:{key}", url=webhook.get_absolute_url(),
        title=f"The webhook {webhook.name} {what}", text=words,
    )  # fmt: skip


def prune() -> int:
    """Delete deliveries that are over and older than events are kept; return how many."""
    past: QuerySet[Delivery] = Delivery.objects.filter(created__lt=clock.now() - timedelta(days=live.KEPT_DAYS))
    deleted, _ = past.exclude(state=_OPEN).delete()
    return deleted


def _seq(row: LiveEvent) -> int:
    return row.seq or 0

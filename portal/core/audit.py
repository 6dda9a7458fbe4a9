"""The audit trail: recorded in the transaction of the act, chained afterwards.

A business transaction takes no lock of the chain. The sealer, which holds a lease, numbers *committed* rows and links
each to the one before: `hash = sha256(prev_hash | seq | fixed columns | digest)`. The payload enters only through
`digest = sha256(salt | payload)`, so erasing payload and salt leaves the chain whole.
"""

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import Subquery
from django.db.models.functions import Coalesce
from django.template.defaultfilters import pluralize
from structlog.contextvars import get_contextvars

from portal.core import clock
from portal.core.actors import ActorRef
from portal.core.models import AuditEvent, Counter

CHAIN = "audit"
GENESIS = "0" * 64
SEAL_CHUNK = 1000
ERASE = "audit.erase_payload"


def canonical(payload: Any) -> str:
    """Return the one JSON text of a payload that digests are taken of."""
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False, cls=DjangoJSONEncoder)


def payload_digest(salt: str, payload: Any) -> str:
    """Return the salted digest that stands for a payload in the chain."""
    return hashlib.sha256(f"{salt}\n{canonical(payload)}".encode()).hexdigest()


def record(
    *,
    actor: ActorRef,
    verb: str,
    object_kind: str,
    object_id: object,
    object_label: str = "",
    lab_id: int | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
) -> AuditEvent:
    """Write one audit row. Call it inside the transaction of the act it describes."""
    content = {"before": before, "after": after, "reason": reason}
    # What is stored is what was digested: dates become text before both.
    payload = json.loads(canonical({key: value for key, value in content.items() if value}))
    salt = secrets.token_hex(16)
    return AuditEvent.objects.create(
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_label=actor.label,
        on_behalf_of=actor.on_behalf_of,
        verb=verb,
        object_kind=object_kind,
        object_id=str(object_id),
        object_label=object_label[:200],
        lab_id=lab_id,
        payload=payload,
        salt=salt,
        digest=payload_digest(salt, payload),
        request_id=str(get_contextvars().get("request_id", ""))[:64],
    )


def link_hash(event: AuditEvent, seq: int, prev_hash: str) -> str:
    """Return the hash that binds an event to its place in the chain."""
    fields = [
        prev_hash, str(seq), event.at.isoformat(), event.actor_kind, event.actor_id, event.actor_label,
        event.on_behalf_of, event.verb, event.object_kind, event.object_id, event.object_label,
        str(event.lab_id), event.request_id, event.digest,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False).encode()).hexdigest()


def seal(*, limit: int = SEAL_CHUNK) -> int:
    """Chain up to `limit` committed rows; return how many. The counter's row keeps two sealers apart."""
    with transaction.atomic():
        Counter.objects.get_or_create(name=CHAIN, defaults={"note": GENESIS})
        counter = Counter.objects.select_for_update().get(name=CHAIN)
        events = list(AuditEvent.objects.filter(seq=None).order_by("id")[:limit])
        seq, prev = counter.value, counter.note
        for event in events:
            seq += 1
            hashed = link_hash(event, seq, prev)
            AuditEvent.objects.filter(pk=event.pk, seq=None).update(seq=seq, prev_hash=prev, hash=hashed)
            prev = hashed
        if events:
            Counter.objects.filter(name=CHAIN).update(value=seq, note=prev)
    return len(events)


def seal_all() -> int:
    """Chain every committed row; return how many were sealed."""
    total = 0
    while sealed := seal():
        total += sealed
    return total


def head() -> tuple[int, str]:
    """Return (seq, hash) of the newest link."""
    counter = Counter.objects.filter(name=CHAIN).first()
    return (counter.value, counter.note) if counter else (0, GENESIS)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with the chain."""

    seq: int
    message: str


def verify(anchors: dict[int, str], *, after: int = 0) -> Iterator[Fault]:
    """Walk the chain and yield each fault: changed, missing or unsealed rows, heads unlike their anchors.

    `anchors` maps seq to the hash noted outside the database (`portal.core.anchors`). `after` begins behind that row,
    whose hash is then taken as it stands: a quick look at the newest part.
    """
    head_seq, head_hash = head()
    expected_seq, prev = after, _hash_at(after)
    sealed = AuditEvent.objects.filter(seq__gt=after)
    for event in sealed.filter(seq__lte=head_seq).order_by("seq").iterator(chunk_size=2000):
        expected_seq += 1
        seq = event.seq or 0
        if seq != expected_seq:
            yield Fault(expected_seq, f"rows {expected_seq} to {seq - 1} are missing")
            expected_seq = seq
        yield from _faults_of(event, prev, anchors.get(seq))
        if event.payload is None and not _erasure_recorded(event):
            yield Fault(seq, "lost its payload, and no erasure is on record")
        prev = event.hash
    if (head_seq, head_hash) != (expected_seq, prev):
        yield Fault(head_seq, f"the chain's head is {head_seq}, the last row that leads to it is {expected_seq}")
    newest_anchor = max(anchors, default=0)
    if newest_anchor > expected_seq:
        yield Fault(newest_anchor, f"anchored up to {newest_anchor}, the last row is {expected_seq}")
    # One statement, so that a sealer at work meanwhile is seen wholly or not at all.
    newest = Counter.objects.filter(name=CHAIN).values("value")[:1]
    if smuggled := AuditEvent.objects.filter(seq__gt=Coalesce(Subquery(newest), 0)).count():
        yield Fault(
            head_seq, f"{smuggled} row{pluralize(smuggled)} lie{pluralize(smuggled, 's,')} past the chain's head"
        )
    # A row of the last minute may belong to a transaction that committed while we walked.
    if unsealed := AuditEvent.objects.filter(seq=None, at__lt=clock.now() - timedelta(minutes=1)).count():
        yield Fault(0, f"{unsealed} row{pluralize(unsealed)} {pluralize(unsealed, 'was,were')} never sealed")


def _hash_at(seq: int) -> str:
    return AuditEvent.objects.filter(seq=seq).values_list("hash", flat=True).first() or GENESIS if seq else GENESIS


def _erasure_recorded(event: AuditEvent) -> bool:
    erasures = AuditEvent.objects.filter(verb=ERASE, object_kind="audit_event", object_id=str(event.pk))
    return erasures.exists()


def _faults_of(event: AuditEvent, prev: str, anchored: str | None) -> Iterator[Fault]:
    seq = event.seq or 0
    if event.prev_hash != prev:
        yield Fault(seq, "does not follow the row before it")
    if event.hash != link_hash(event, seq, event.prev_hash):
        yield Fault(seq, "was changed after it was sealed")
    if event.payload is not None and event.digest != payload_digest(event.salt, event.payload):
        yield Fault(seq, "has a payload unlike its digest")
    if anchored is not None and anchored != event.hash:
        yield Fault(seq, "is unlike the head anchored outside the database")


def erase_payload(event_id: int, *, actor: ActorRef, reason: str) -> None:
    """Erase the payload of one event (its digest stays in the chain) and record that it was erased."""
    with transaction.atomic():
        event = AuditEvent.objects.get(pk=event_id)
        AuditEvent.objects.filter(pk=event_id).update(payload=None, salt="")
        record(
            actor=actor, verb=ERASE, object_kind="audit_event", object_id=event_id,
            object_label=event.verb, lab_id=event.lab_id, reason=reason,
        )  # fmt: skip

"""Sending again what was set aside, or a body whose batch failed: one call, once what was wrong is mended."""

from functools import partial
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet, Value
from django.db.models.functions import Length, Replace

from portal.core import audit
from portal.core.errors import Conflict
from principals import permissions
from principals.actors import Actor
from telemetry.engine.redaction import KEPT_OF_RAW
from telemetry.engine.slurm.xdmod_text import COLUMNS as XDMOD_COLUMNS
from telemetry.models import IngestBatch, QuarantinedRow
from telemetry.services.ingest.quarantine import KEPT_PER_BATCH
from telemetry.services.ingest.uploads import hint_at, store_body

State = IngestBatch.State
# What is kept of these is not what was sent: bytes are replaced, or an end is missing.
DAMAGED: Final = frozenset({"invalid_utf8", "binary_data", "line_too_long", "truncated_last_line", "record_too_long"})
_REDACTED: Final = "[REDACTED:"


def whole_rows(batch: IngestBatch) -> QuerySet[QuarantinedRow]:
    """Return the rows of a batch that are kept as they were sent, so that they can be read again: text of every column.

    Not among them: what was cut or damaged, what held a secret, records that came as objects or JSON.
    """
    separators = _separators(batch)
    if separators is None:
        return batch.quarantined.none()
    rows = batch.quarantined.exclude(reason__in=DAMAGED).exclude(raw__contains=_REDACTED)
    length = Length("raw")
    found = length - Length(Replace("raw", Value("|"), Value("")))
    return rows.annotate(length=length, found=found).filter(length__lt=KEPT_OF_RAW, found__gte=separators)


def can_retry(batch: IngestBatch) -> int:
    """Return how many refused rows of a batch can be sent again; all that is left of one that failed counts as one."""
    if batch.state in (State.QUEUED, State.RUNNING):
        return 0
    if batch.state == State.FAILED and batch.payload.exists():
        return 1
    return whole_rows(batch).count()


def retry_batch(*, actor: Actor, batch: IngestBatch) -> IngestBatch:
    """Send a batch on its way again and return the batch that is queued: a failed one itself, from where it was.

    Of one that is over, the refused rows that are kept whole become a batch of their own and leave the old one, in one
    transaction; those that are refused again stand in the new one. Errors: `NotAllowed`, Conflict `batch_at_work`,
    `nothing_to_retry`.
    """
    permissions.require(actor, "ingest.retry", remedy="Research-computing staff do this.")
    with transaction.atomic():
        batch.cluster.lock()
        batch.refresh_from_db()
        if batch.state in (State.QUEUED, State.RUNNING):
            raise Conflict("This batch is at work.", code="batch_at_work", remedy="Wait for its end.")
        rows = 0
        if _queue_again(batch):
            again = batch
        else:
            again, rows = _send_rows(actor, batch)
        audit.record(
            actor=actor.ref, verb="ingest.retry", object_kind="ingest_batch", object_id=batch.public_id,
            object_label=batch.name, after={"batch": str(again.public_id), "rows": rows},
        )  # fmt: skip
        transaction.on_commit(partial(hint_at, again.pk), robust=True)
    return again


def _queue_again(batch: IngestBatch) -> bool:
    """Queue a failed batch whose body is still there; say whether it was one."""
    failed = IngestBatch.objects.filter(pk=batch.pk, state=State.FAILED)
    if not batch.payload.exists():
        return False
    afresh: dict[str, Any] = {"state": State.QUEUED, "attempts": 0, "error": "", "finished": None, "leased_until": None}
    return bool(failed.update(**afresh))


def _send_rows(actor: Actor, batch: IngestBatch) -> tuple[IngestBatch, int]:
    rows = list(whole_rows(batch).order_by("line", "pk").values_list("pk", "raw")[:KEPT_PER_BATCH])
    if not rows:
        raise Conflict(
            "Nothing of this batch can be tried again.", code="nothing_to_retry",
            remedy="Send the file again: what was sent before changes nothing.",
        )  # fmt: skip
    body = "".join(f"{raw}\n" for _, raw in rows).encode()
    # With the header of the old one it goes on below that, as a batch does that was interrupted.
    again = IngestBatch.objects.create(
        cluster=batch.cluster, format=batch.format, source=batch.source, name=f"again: {batch.name}"[:200], line=2,
        header=batch.header, sender_kind=actor.ref.kind, sender_id=actor.ref.id, sent_by=actor.ref.label,
        bytes_total=len(body),
    )  # fmt: skip
    store_body(again, body)
    pks = [pk for pk, _ in rows]
    for first in range(0, len(pks), 500):
        QuarantinedRow.objects.filter(pk__in=pks[first : first + 500]).delete()
    return again, len(rows)


def _separators(batch: IngestBatch) -> int | None:
    """Return how many separators a whole row of a batch has at least; None where its rows are no lines of text."""
    if batch.kind != IngestBatch.Kind.JOBS:
        return None
    if batch.format == "xdmod":
        return XDMOD_COLUMNS.count("|")
    if batch.format == "sacct" and batch.header:
        return batch.header.rstrip("\r").rstrip("|").count("|")
    return None

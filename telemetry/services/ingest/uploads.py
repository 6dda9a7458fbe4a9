"""Ingest of what was posted: the body becomes rows with its batch, and a worker on any host works through it."""

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from portal.core import clock
from portal.core.actors import ActorRef
from portal.core.errors import Invalid, TooLarge
from portal.core.stopping import Stopping
from principals.actors import SYSTEM_ACTOR, Actor
from telemetry import tasks
from telemetry.engine.slurm.errors import FormatError
from telemetry.models import IngestBatch, IngestPayload
from telemetry.services.ingest import batches
from telemetry.services.ingest.chunks import LEASE, LeaseLost
from telemetry.services.ingest.feed import Feed
from telemetry.services.ingest.files import require_format
from telemetry.services.ingest.mistyped import require_cluster
from telemetry.services.ingest.running import read_chunks, run_feed

log = structlog.get_logger(__name__)

PIECE_BYTES: Final = 1024 * 1024
SENT_AGAIN_AFTER: Final = timedelta(seconds=10)
_FIRST_BYTES: Final = 1024


def accept_upload(
    *, actor: Actor, cluster_name: str, body: bytes, format: str, source: str = "api", name: str = ""
) -> IngestBatch:
    """Store a posted body with its queued batch in one transaction, and hint a worker at it after commit.

    The same body for the same cluster and format, done before, gives that batch again and nothing runs. Errors:
    `Invalid` (`format_unknown`, `cluster_name_invalid`, `cluster_unknown`, `body_empty`, `not_text`), `TooLarge`,
    `NotAllowed`, `Conflict`.
    """
    require_format(format)
    _require_text(body)
    cluster = require_cluster(actor, "jobs", cluster_name)
    digest = hashlib.sha256(body).hexdigest()
    with transaction.atomic():
        cluster.lock()
        same = IngestBatch.objects.sent_by_actor(actor).filter(cluster=cluster, format=format, digest=digest)
        known = same.exclude(state=IngestBatch.State.FAILED).order_by("created").first()
        if known is not None:
            return known
        batch = IngestBatch.objects.create(
            cluster=cluster, format=format, source=source[:64], name=name[:200], digest=digest, line=1,
            sender_kind=actor.ref.kind, sender_id=actor.ref.id, sent_by=actor.ref.label, bytes_total=len(body),
        )  # fmt: skip
        store_body(batch, body)
        # A broker that is down loses a hint, not the work: the sweep finds the row.
        transaction.on_commit(partial(hint_at, batch.pk), robust=True)
    return batch


def store_body(batch: IngestBatch, body: bytes) -> None:
    """Store a body in pieces for a worker on any host to read. Call it in the transaction that makes the batch."""
    pieces = (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
    IngestPayload.objects.bulk_create(
        (IngestPayload(batch=batch, number=number, data=data) for number, data in enumerate(pieces)), batch_size=8
    )


def hint_at(batch_id: int) -> None:
    """Tell a worker that a batch is queued."""
    tasks.run_ingest_batch.delay(batch_id)


def _require_text(body: bytes) -> None:
    if len(body) > settings.INGEST_MAX_BYTES:
        raise TooLarge(
            f"The body is larger than {settings.INGEST_MAX_BYTES} bytes.",
            remedy="Send it in several requests, or load the file with `manage.py ingest_jobs`.",
        )
    if not body.strip():
        raise Invalid("The body is empty.", code="body_empty", remedy="Send the text that sacct printed.")
    if b"\0" in body[:_FIRST_BYTES]:
        raise Invalid("The body is not text.", code="not_text", remedy="Send the text that sacct printed, unpacked.")


def run_batch(batch_id: int) -> bool:
    """Work through a batch from its last committed place; say whether this call brought it to an end.

    Whoever takes the lease works; everybody else leaves. An error gives the batch back, after three without progress
    it fails with what was wrong.
    """
    batch = IngestBatch.objects.select_related("cluster").filter(pk=batch_id).first()
    lease = batches.take_lease(batch) if batch else None
    if batch is None or lease is None:
        return False
    ref = batch.sender  # a worker acts in their name, not in its own
    if batch.attempts > batches.MAX_ATTEMPTS:
        text = f"Work ended {batches.MAX_ATTEMPTS} times before line {batch.line}. {batch.error}".strip()
        return batches.fail_batch(batch, lease, ref, text, keep=True)
    feed = Feed(batch, batch.cluster, lease, group_is_lab=batch.format == "xdmod")
    try:
        run_feed(feed, read_chunks(batch, stream_payload(batch), now_s=clock.now_s()), ref)
    except FormatError as error:
        # Lines that were set aside before stand nowhere else.
        return batches.fail_batch(batch, feed.lease, ref, str(error), keep=bool(batch.header))
    except Stopping:
        batches.release_lease(batch, feed.lease)
        return False
    except LeaseLost:
        log.warning("ingest_lease_lost", batch=batch.pk)
        return False
    except Exception as error:
        log.exception("ingest_batch_failed", batch=batch.pk)
        return _give_back(feed, ref, error)
    return True


def _give_back(feed: Feed, ref: ActorRef, error: Exception) -> bool:
    batch = feed.batch
    batch.refresh_from_db(fields=["attempts"])
    text = f"{type(error).__name__} before line {batch.line}."
    if batch.attempts >= batches.MAX_ATTEMPTS:
        text = f"{text} Tried {batches.MAX_ATTEMPTS} times; all before that line is stored. Tell the operators."
        return batches.fail_batch(batch, feed.lease, ref, text, keep=True)
    batches.release_lease(batch, feed.lease, text)
    return False


def stream_payload(batch: IngestBatch) -> Iterator[bytes]:
    """Yield the stored body from the batch's place on, a piece at a time."""
    number, skip = divmod(batch.offset, PIECE_BYTES)
    while True:
        piece = IngestPayload.objects.filter(batch=batch, number=number).values_list("data", flat=True).first()
        if piece is None:
            return
        yield bytes(piece)[skip:]
        number, skip = number + 1, 0


def sweep() -> int:
    """Send again what nobody works on: queued for 10 s and more, or under a lapsed lease. Return how many were sent.

    What a command left without a payload cannot go on here: it is marked failed, and the command's next run goes on.
    """
    now = clock.now()
    lapsed = Q(state=IngestBatch.State.RUNNING, leased_until__lt=now)
    unsent = Q(state=IngestBatch.State.QUEUED, created__lt=now - SENT_AGAIN_AFTER)
    unsent &= Q(leased_until=None) | Q(leased_until__lt=now)
    has_payload = Exists(IngestPayload.objects.filter(batch=OuterRef("pk")))
    found = IngestBatch.objects.filter(lapsed | unsent).order_by("pk")[:200]
    sendable = set(IngestBatch.objects.filter(has_payload, lapsed | unsent).values_list("pk", flat=True))
    for batch in found:
        if batch.pk not in sendable:
            text = f"The process ended before line {batch.line}. Run the same command again to go on."
            batches.fail_batch(batch, batch.leased_until, SYSTEM_ACTOR.ref, text)
            continue
        # A queued batch is not sent again while this hint may still wait its turn.
        queued = IngestBatch.objects.filter(pk=batch.pk, state=IngestBatch.State.QUEUED)
        queued.update(leased_until=now + LEASE)
        tasks.run_ingest_batch.delay(batch.pk)
    return len(found)

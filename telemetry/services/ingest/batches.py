"""The life of a batch: queued → running under a lease → done or failed. Conditional updates decide, one row each."""

from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from portal.core import audit, clock
from portal.core.actors import ActorRef
from principals.actors import Actor
from principals.models import Cluster
from telemetry.models import IngestBatch
from telemetry.services.ingest.chunks import LEASE, LeaseLost
from telemetry.services.ingest.feed import Feed

State = IngestBatch.State
MAX_ATTEMPTS: Final = 3


def start_batch(
    *,
    actor: Actor,
    cluster: Cluster,
    format: str,
    source: str,
    name: str = "",
    digest: str = "",
    bytes_total: int | None = None,
    kind: IngestBatch.Kind = IngestBatch.Kind.JOBS,
) -> IngestBatch:
    """Make a batch that runs in this process, under our lease from the start. Errors: `Conflict`, of `Cluster.lock`."""
    now = clock.now()
    with transaction.atomic():
        cluster.lock()
        return IngestBatch.objects.create(
            kind=kind, cluster=cluster, format=format, source=source[:64], name=name[:200], digest=digest,
            bytes_total=bytes_total, sender_kind=actor.ref.kind, sender_id=actor.ref.id, sent_by=actor.ref.label,
            state=State.RUNNING, started=now, leased_until=now + LEASE, line=1, attempts=1,
        )  # fmt: skip


def lease_of(batch: IngestBatch) -> datetime:
    """Return until when a batch that runs is leased."""
    if batch.leased_until is None:
        raise ValueError("The batch is not running.")
    return batch.leased_until


def find_interrupted(*, cluster: Cluster, format: str, digest: str) -> IngestBatch | None:
    """Return the newest batch of the same file that a command left unfinished after some progress, or None."""
    lapsed = Q(state=State.RUNNING, leased_until__lt=clock.now())
    same = IngestBatch.objects.filter(cluster=cluster, format=format, digest=digest, kind=IngestBatch.Kind.JOBS)
    left = same.filter(lapsed | Q(state=State.FAILED), offset__gt=0, payload=None)
    return left.order_by("-created").first() if digest else None


def take_lease(batch: IngestBatch, *, resume_failed: bool = False) -> datetime | None:
    """Take a batch that is queued, or running under a lapsed lease (or failed, to go on); return our lease or None."""
    now = clock.now()
    free = Q(state=State.QUEUED) | Q(state=State.RUNNING, leased_until__lt=now)
    if resume_failed:
        free |= Q(state=State.FAILED)
    taken = IngestBatch.objects.filter(free, pk=batch.pk).update(
        state=State.RUNNING, leased_until=now + LEASE, started=Coalesce("started", now), finished=None, error="",
        attempts=F("attempts") + 1,
    )  # fmt: skip
    if not taken:
        return None
    batch.refresh_from_db()
    return now + LEASE


def finish_batch(feed: Feed, ref: ActorRef) -> None:
    """Mark a batch done, drop its payload, leave one audit row. Errors: `LeaseLost`."""
    batch, now = feed.batch, clock.now()
    with transaction.atomic():
        ours = IngestBatch.objects.filter(pk=batch.pk, state=State.RUNNING, leased_until=feed.lease)
        if not ours.update(state=State.DONE, finished=now, leased_until=None):
            raise LeaseLost
        batch.payload.all().delete()
        _record(batch, ref, f"ingest.{batch.kind}")
    batch.state, batch.finished, batch.leased_until = State.DONE, now, None


def fail_batch(batch: IngestBatch, lease: datetime | None, ref: ActorRef, error: str, *, keep: bool = False) -> bool:
    """Mark a batch failed with an error that says what to do; say whether it was ours to fail.

    `keep` keeps the payload, for a batch that an operator may send on its way again.
    """
    now = clock.now()
    with transaction.atomic():
        ours = IngestBatch.objects.filter(pk=batch.pk, state__in=(State.RUNNING, State.QUEUED), leased_until=lease)
        if not ours.update(state=State.FAILED, finished=now, leased_until=None, error=error[:500]):
            return False
        if not keep:
            batch.payload.all().delete()
        _record(batch, ref, f"ingest.{batch.kind}_failed", reason=error[:500])
    batch.state, batch.error, batch.finished, batch.leased_until = State.FAILED, error[:500], now, None
    return True


def keep_lease(feed: Feed) -> bool:
    """Keep a batch ours while there is nothing to write for longer than its lease; say whether it is."""
    lease = clock.now() + LEASE
    held = IngestBatch.objects.filter(pk=feed.batch.pk, state=State.RUNNING, leased_until=feed.lease)
    if not held.update(leased_until=lease):
        return False
    feed.lease = lease
    return True


def release_lease(batch: IngestBatch, lease: datetime, error: str = "") -> None:
    """Give a batch back to the queue, after an error or because this process ends; the sweep sends it again."""
    ours = IngestBatch.objects.filter(pk=batch.pk, state=State.RUNNING, leased_until=lease)
    attempts = F("attempts") if error else Value(0)  # to end is no failed attempt
    ours.update(state=State.QUEUED, leased_until=None, error=error[:500], attempts=attempts)


def _record(batch: IngestBatch, ref: ActorRef, verb: str, reason: str = "") -> None:
    after = {
        "cluster": batch.cluster.name, "source": batch.source, "format": batch.format, "digest": batch.digest,
        "created": batch.created_rows, "updated": batch.updated_rows, "duplicate": batch.duplicate_rows,
        "late": batch.late_rows, "rejected": batch.rejected_rows, "steps": batch.step_rows,
        "redactions": batch.redactions,
    }  # fmt: skip
    audit.record(
        actor=ref, verb=verb, object_kind="ingest_batch", object_id=batch.public_id, object_label=batch.name,
        after=after, reason=reason,
    )  # fmt: skip

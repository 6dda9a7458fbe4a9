"""Clusters made on first use, and taken back where the name was mistyped: where nothing of them was stored."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Exists, ForeignObjectRel, OuterRef

from portal.core import audit, clock, leases
from principals.actors import SYSTEM_ACTOR, Actor
from principals.models import Cluster
from principals.services import ensure_cluster, require_cluster_name
from telemetry import permissions
from telemetry.models import IngestBatch, IngestSource, InventoryReading, QuarantinedRow, SlurmReader
from telemetry.services.ingest.quarantine import OTHER_CLUSTER
from telemetry.services.sources import reader_lease

_TRACES: Final = (IngestBatch, IngestSource, SlurmReader, InventoryReading)  # of an attempt, which go with the cluster
ATTEMPTS_KEPT: Final = timedelta(days=7)  # as long as the body that was sent, which may be tried again


def require_cluster(actor: Actor, kind: str, name: str) -> Cluster:
    """Return the cluster that `actor` feeds, made on first use. Errors: `Invalid`, `NotAllowed`."""
    require_cluster_name(name)
    permissions.require_feed(actor, kind, name)
    return ensure_cluster(name)


@contextmanager
def feed_cluster(
    *, actor: Actor, kind: str, name: str, say: Callable[[str], object] = lambda _: None
) -> Iterator[Cluster]:
    """Give the cluster of that name, made on first use; a new one of which nothing is stored then does not stay.

    `say` is told of both. Errors: `Invalid`, `NotAllowed`.
    """
    is_new = not Cluster.objects.named(name).exists()
    cluster = require_cluster(actor, kind, name)
    if is_new:
        say(f"{name} is a new cluster; it had no records until now.")
    try:
        yield cluster
    finally:
        if is_new and withdraw_cluster(actor=actor, cluster=cluster, kind=kind):
            say(f"Nothing of {name} was stored, so the new cluster was not kept.")


def withdraw_cluster(*, actor: Actor, cluster: Cluster, kind: str = "jobs") -> bool:
    """Delete a cluster of which nothing was stored, with the traces of the attempt; say whether it is gone.

    It stays where anything else refers to it, where a batch or a reader is still at work, and where records were set
    aside for another reason than being another cluster's: those somebody should see. Errors: `NotAllowed`.
    """
    permissions.require_feed(actor, kind, cluster.name)
    with transaction.atomic():
        locked = Cluster.objects.select_for_update().filter(pk=cluster.pk).first()
        if locked is None or _is_in_use(locked):
            return False
        audit.record(
            actor=actor.ref, verb="cluster.withdraw", object_kind="cluster", object_id=locked.pk,
            object_label=locked.name, reason="Nothing of it was stored.",
        )  # fmt: skip
        locked.delete()
    return True


def withdraw_mistyped() -> int:
    """Withdraw clusters whose last attempt to feed them is `ATTEMPTS_KEPT` ago and stored nothing; return how many.

    An upload fails long after it was accepted, and whoever sent it asks what became of it.
    """
    before = clock.now() - ATTEMPTS_KEPT
    batches = IngestBatch.objects.filter(cluster=OuterRef("pk"))
    sources = IngestSource.objects.filter(cluster=OuterRef("pk"))
    tried = Cluster.objects.filter(Exists(batches) | Exists(sources), created__lt=before)
    idle = tried.exclude(Exists(batches.filter(created__gte=before)))
    unused = [cluster for cluster in idle if not _is_in_use(cluster)]
    return sum(withdraw_cluster(actor=SYSTEM_ACTOR, cluster=cluster) for cluster in unused)


def _is_in_use(cluster: Cluster) -> bool:
    working = IngestBatch.objects.filter(state__in=(IngestBatch.State.QUEUED, IngestBatch.State.RUNNING))
    aside = QuarantinedRow.objects.filter(batch__cluster=cluster).exclude(reason=OTHER_CLUSTER)
    expected = IngestSource.objects.filter(cluster=cluster).exclude(expected_every_s=None)
    if working.filter(cluster=cluster).exists() or aside.exists() or expected.exists():
        return True
    if leases.is_held(reader_lease(cluster)):
        return True
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: cluster}).exists()
        for relation in Cluster._meta.get_fields(include_hidden=True)
        if isinstance(relation, ForeignObjectRel) and relation.related_model not in _TRACES
    )

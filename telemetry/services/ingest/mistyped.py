"""A cluster made under a mistyped name: taken back where nothing of it was stored."""

from typing import Final

from django.db import transaction
from django.db.models import ForeignObjectRel

from portal.core import audit
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.models import IngestBatch, IngestSource, QuarantinedRow
from telemetry.services.ingest.quarantine import OTHER_CLUSTER

_TRACES: Final = (IngestBatch, IngestSource)  # of an attempt, which go with the cluster


def withdraw_cluster(*, actor: Actor, cluster: Cluster) -> bool:
    """Delete a cluster of which nothing was stored, with the traces of the attempt; say whether it is gone.

    It stays where anything else refers to it, where a batch is still at work, and where records were set aside for
    another reason than being another cluster's: those somebody should see. Errors: `NotAllowed`.
    """
    permissions.require_feed(actor, "jobs", cluster.name)
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


def _is_in_use(cluster: Cluster) -> bool:
    working = IngestBatch.objects.filter(state__in=(IngestBatch.State.QUEUED, IngestBatch.State.RUNNING))
    aside = QuarantinedRow.objects.filter(batch__cluster=cluster).exclude(reason=OTHER_CLUSTER)
    expected = IngestSource.objects.filter(cluster=cluster).exclude(expected_every_s=None)
    if working.filter(cluster=cluster).exists() or aside.exists() or expected.exists():
        return True
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: cluster}).exists()
        for relation in Cluster._meta.get_fields(include_hidden=True)
        if isinstance(relation, ForeignObjectRel) and relation.related_model not in _TRACES
    )

"""When each source of telemetry was last heard, how new what it says is, and how often it is expected."""

from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import Case, F, When

from portal.core import audit, clock
from portal.core.errors import Invalid
from principals import permissions
from principals.actors import Actor
from principals.models import Cluster
from telemetry.models import IngestGap, IngestSource
from telemetry.selectors.sources import SourceState, state_of

LONGEST_EXPECTED_S: Final = 31 * 86_400  # a source that comes less often than each month is never late


def reader_lease(cluster: Cluster) -> str:
    """Return the name of the lease that the one reader of a cluster holds."""
    return f"slurm-reader:{cluster.name}"


def note_source(*, cluster: Cluster, name: str, kind: str, newest: datetime | None = None) -> None:
    """Note that a source was heard just now, in the caller's transaction.

    `kind` is one of `IngestBatch.Kind`; `newest` the newest instant that any of its records speaks of.
    """
    now = clock.now()
    heard: dict[str, Any] = {"last_received": now}
    if newest is not None:
        heard["last_record_at"] = Case(When(last_record_at__gt=newest, then=F("last_record_at")), default=newest)
    known = IngestSource.objects.filter(cluster=cluster, name=name[:64], kind=kind)
    _note_gap(known.first(), now)
    if not known.update(**heard):
        IngestSource.objects.get_or_create(cluster=cluster, name=name[:64], kind=kind)
        known.update(**heard)


def _note_gap(source: IngestSource | None, now: datetime) -> None:
    """Note the silence that ends now, where it was longer than the source may be silent."""
    if source is None or not source.expected_every_s or source.last_received is None:
        return
    if state_of(int((now - source.last_received).total_seconds()), source.expected_every_s) != SourceState.CURRENT:
        gap = IngestGap(source=source, since=source.last_received, until=now)
        IngestGap.objects.bulk_create([gap], ignore_conflicts=True)  # two may hear it at once


def expect_source(*, actor: Actor, source: IngestSource, every_s: int | None) -> IngestSource:
    """Set how often a source is expected, in seconds; `None` where it comes when it comes and is never late.

    Errors: `NotAllowed`, `Invalid` `interval_out_of_range`.
    """
    permissions.require(actor, "ingest.expect", remedy="Research-computing staff say how often a source is expected.")
    if every_s is not None and not 1 <= every_s <= LONGEST_EXPECTED_S:
        raise Invalid(
            f"A source is expected every 1 to {LONGEST_EXPECTED_S} seconds.", code="interval_out_of_range",
            extra={"field": "every_s"},
        )  # fmt: skip
    with transaction.atomic():
        held = IngestSource.objects.select_for_update(no_key=True, of=("self",)).select_related("cluster")
        row = held.get(pk=source.pk)
        before = row.expected_every_s
        if before != every_s:
            row.expected_every_s = every_s
            row.save(update_fields=["expected_every_s"])
            audit.record(
                actor=actor.ref, verb="ingest.expect", object_kind="ingest_source", object_id=row.pk,
                object_label=f"{row.name} ({row.kind}) of {row.cluster.name}"[:200],
                before={"expected_every_s": before}, after={"expected_every_s": every_s},
            )  # fmt: skip
    return row

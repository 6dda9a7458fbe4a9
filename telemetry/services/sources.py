"""When each source of telemetry was last heard, and how new what it says is."""

from datetime import datetime

from portal.core import clock
from principals.models import Cluster
from telemetry.models import IngestSource


def note_source(*, cluster: Cluster, name: str, kind: str, newest: datetime | None = None) -> None:
    """Note that a source was heard just now, in the caller's transaction.

    `kind` is one of `IngestBatch.Kind`; `newest` the newest instant that any of its records speaks of.
    """
    source, _ = IngestSource.objects.get_or_create(cluster=cluster, name=name[:64], kind=kind)
    source.last_received = clock.now()
    if newest is not None and (source.last_record_at is None or newest > source.last_record_at):
        source.last_record_at = newest
    source.save(update_fields=["last_received", "last_record_at"])

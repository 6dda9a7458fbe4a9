"""When each source of telemetry was last heard, and how new what it says is."""

from datetime import datetime
from typing import Any

from django.db.models import Case, F, When

from portal.core import clock
from principals.models import Cluster
from telemetry.models import IngestSource


def note_source(*, cluster: Cluster, name: str, kind: str, newest: datetime | None = None) -> None:
    """Note that a source was heard just now, in the caller's transaction.

    `kind` is one of `IngestBatch.Kind`; `newest` the newest instant that any of its records speaks of.
    """
    heard: dict[str, Any] = {"last_received": clock.now()}
    if newest is not None:
        heard["last_record_at"] = Case(When(last_record_at__gt=newest, then=F("last_record_at")), default=newest)
    known = IngestSource.objects.filter(cluster=cluster, name=name[:64], kind=kind)
    if not known.update(**heard):
        IngestSource.objects.get_or_create(cluster=cluster, name=name[:64], kind=kind)
        known.update(**heard)

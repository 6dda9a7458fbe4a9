"""What telemetry keeps for a while only: rows set aside, bodies that nobody will read again."""

from datetime import timedelta
from typing import Any, Final

from django.db.models import QuerySet

from portal.core import clock
from telemetry.models import IngestBatch, IngestGap, IngestPayload, JobGpu, QuarantinedRow
from telemetry.services.ingest import withdraw_mistyped

QUARANTINE_KEPT: Final = timedelta(days=30)
# A body comes as it was sent, before anything is redacted; a batch that failed keeps it so that it can be tried again.
PAYLOAD_KEPT: Final = timedelta(days=7)
GPU_WAITS: Final = timedelta(days=30)  # a reading whose job nobody ever told of
GAPS_KEPT: Final = timedelta(days=90)
_CHUNK: Final = 50  # a piece of a body is up to a megabyte, and SQLite has one writer


def prune() -> dict[str, int]:
    """Delete quarantined rows, left bodies, readings without a job, gaps and clusters that never were, past their time.

    Return how many. Counts of batches stay.
    """
    now = clock.now()
    ended = (IngestBatch.State.DONE, IngestBatch.State.FAILED)
    return {
        "quarantined": _delete(QuarantinedRow.objects.filter(at__lt=now - QUARANTINE_KEPT)),
        "payloads": _delete(
            IngestPayload.objects.filter(batch__state__in=ended, batch__finished__lt=now - PAYLOAD_KEPT)
        ),
        "gpu_readings": _delete(JobGpu.objects.filter(job__isnull=True, received__lt=now - GPU_WAITS)),
        "gaps": _delete(IngestGap.objects.filter(until__lt=now - GAPS_KEPT)),
        "clusters": withdraw_mistyped(),
    }


def _delete(rows: QuerySet[Any]) -> int:
    total = 0
    while ids := list(rows.order_by("pk").values_list("pk", flat=True)[:_CHUNK]):
        total += rows.model._default_manager.filter(pk__in=ids).delete()[0]
    return total

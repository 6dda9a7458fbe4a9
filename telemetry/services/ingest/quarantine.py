"""Records that are not taken: kept with their reason, redacted, and counted past what is kept."""

from collections.abc import Sequence
from typing import Final

from django.db.models import Count

from telemetry.engine.redaction import redact_raw
from telemetry.engine.slurm.records import Rejected
from telemetry.models import IngestBatch, QuarantinedRow
from telemetry.services.ingest.feed import redaction_key

KEPT_PER_BATCH: Final = 10_000
_DETAIL_LENGTH: Final = 300
OTHER_CLUSTER: Final = "other_cluster"


def set_aside(batch: IngestBatch, rejected: Sequence[Rejected], *, before: int) -> int:
    """Store rejected records of a chunk; `before` of the batch were rejected already. Return how many secrets hid."""
    rows, secrets = [], 0
    for row in rejected[: max(0, KEPT_PER_BATCH - before)]:
        raw, in_raw = redact_raw(row.raw, key=redaction_key())
        detail, _ = redact_raw(row.detail, key=redaction_key(), keep=_DETAIL_LENGTH)
        secrets += in_raw
        rows.append(
            QuarantinedRow(
                batch=batch, line=row.line_no, reason=row.reason_code[:40], detail=_storable(detail), raw=_storable(raw)
            )
        )
    QuarantinedRow.objects.bulk_create(rows, batch_size=500)
    return secrets


def _storable(text: str) -> str:
    """Show zero bytes as U+2400: PostgreSQL's text cannot hold them."""
    return text.replace("\0", "\u2400")


def describe_others(batch: IngestBatch, limit: int = 3) -> list[str]:
    """Return what is said of a batch whose every record is of another cluster; nothing where one is not."""
    if not batch.rejected_rows or batch.rejected_rows + batch.step_rows != batch.total_rows:
        return []
    if batch.quarantined.exclude(reason=OTHER_CLUSTER).exists():
        return []
    return list(batch.quarantined.order_by("detail").values_list("detail", flat=True).distinct()[:limit])


def count_reasons(batch: IngestBatch) -> dict[str, int]:
    """Return how many of the kept rows of a batch were set aside for each reason, most frequent first."""
    counted = batch.quarantined.values_list("reason").annotate(number=Count("id")).order_by("-number", "reason")
    return dict(counted)

"""What ingest sets aside is kept for its term, and no longer."""

from datetime import timedelta

import pytest

from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from telemetry.models import IngestBatch, IngestPayload, QuarantinedRow
from telemetry.services import prune
from telemetry.services.retention import PAYLOAD_KEPT, QUARANTINE_KEPT
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
SECOND = timedelta(seconds=1)


def batch(cast: Cast, state: str, finished_before: timedelta | None) -> IngestBatch:
    finished = clock.now() - finished_before if finished_before else None
    made = IngestBatch.objects.create(
        cluster=cast.cluster, format="sacct", source="api", sent_by=SYSTEM_ACTOR.ref.label, state=state,
        finished=finished, rejected_rows=2,
    )  # fmt: skip
    IngestPayload.objects.create(batch=made, number=0, data=b"JobID|User\n")
    return made


def test_a_row_set_aside_goes_after_its_term_and_its_count_stays(cast: Cast) -> None:
    failed = batch(cast, "done", SECOND)
    for line, age in ((1, QUARANTINE_KEPT + SECOND), (2, QUARANTINE_KEPT - timedelta(minutes=1))):
        QuarantinedRow.objects.create(batch=failed, line=line, reason="bad_time", at=clock.now() - age)
    assert prune()["quarantined"] == 1
    assert list(failed.quarantined.values_list("line", flat=True)) == [2]
    failed.refresh_from_db()
    assert failed.rejected_rows == 2


def test_only_bodies_of_batches_that_ended_long_ago_go(cast: Cast) -> None:
    old = batch(cast, "failed", PAYLOAD_KEPT + SECOND)
    kept = [batch(cast, "failed", PAYLOAD_KEPT - timedelta(minutes=1)), batch(cast, "queued", None)]
    assert prune()["payloads"] == 1
    assert not old.payload.exists() and all(each.payload.exists() for each in kept)

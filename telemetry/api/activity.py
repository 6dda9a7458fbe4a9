"""What collectors send of the commands on login nodes."""

from typing import Any, Final

from django.http import HttpRequest
from ninja import Router

from portal.core.errors import TooLarge
from portal.core.idempotency import idempotent
from portal.core.problems import answers
from principals.auth import actor_of
from telemetry import services
from telemetry.api.signatures import HEADER, requires_signed
from telemetry.engine.activity_batches import (
    Batch,
    Health,
    LoopPart,
    MinutePart,
    PollingPart,
    SessionPart,
    SshPart,
    SubmissionPart,
)
from telemetry.schemas import ActivityIn, ActivityOut, RejectedPart

router = Router()
MOST_BYTES: Final = 2**20
_SIGNATURE: Final[dict[str, Any]] = {
    "parameters": [
        {
            "in": "header", "name": HEADER, "required": True,
            "description": "HMAC-SHA256 of the body, with the token's text as key.",
            "schema": {"type": "string", "pattern": "^sha256=[0-9a-f]{64}$"},
        }
    ]
}  # fmt: skip


@router.post(
    "/activity", auth=requires_signed("ingest:activity"), response=answers(200, ActivityOut), openapi_extra=_SIGNATURE
)
@idempotent
def ingest_activity(request: HttpRequest, body: ActivityIn) -> tuple[int, ActivityOut]:
    """Send what a collector counted on a login node; each part that is refused says why, the rest is taken."""
    if len(request.body) > MOST_BYTES:
        raise TooLarge("The batch is larger than a megabyte.", code="too_large", remedy="Send it in several batches.")
    actor = actor_of(request)
    with services.feed_cluster(actor=actor, kind="activity", name=body.cluster) as cluster:
        recorded = services.record_activity(actor=actor, cluster=cluster, batch=batch_of(body))
    rejected = [
        RejectedPart(part=each.part, index=each.index, reason=each.reason, remedy=each.remedy)
        for each in recorded.rejected
    ]
    return 200, ActivityOut(accepted=recorded.accepted, rejected=rejected)


def batch_of(body: ActivityIn) -> Batch:
    """Return a body as services take it."""
    health = body.health
    return Batch(
        host=body.host, boot=body.boot, run=str(body.run), batch=str(body.batch), collector=body.collector,
        mode=body.mode, study=body.study, since=body.since, until=body.until,
        health=Health(**{name: getattr(health, name) for name in Health._fields}),
        sessions=[SessionPart(**{name: getattr(one, name) for name in SessionPart._fields}) for one in body.sessions],
        minutes=[MinutePart(one.session, one.driver, one.minute, one.counts, one.place) for one in body.minutes],
        submissions=[SubmissionPart(one.session, one.at) for one in body.submissions],
        polling=[PollingPart(one.session, one.first, one.last, one.queries, one.period_s) for one in body.polling],
        loops=[LoopPart(one.session, one.submitted, one.again) for one in body.loops],
        ssh=[SshPart(**{name: getattr(one, name) for name in SshPart._fields}) for one in body.ssh],
    )  # fmt: skip

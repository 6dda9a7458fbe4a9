"""What Slurm's hooks tell of jobs, as `gatehouse eventd` sends it."""

from django.http import HttpRequest
from ninja import Router

from portal.core.idempotency import idempotent
from portal.core.problems import answers
from principals.auth import actor_of
from telemetry import services
from telemetry.api.signatures import DESCRIBED, requires_signed
from telemetry.schemas import SlurmEventResult, SlurmEventsIn, SlurmEventsOut

router = Router()


@router.post(
    "/slurm-events", auth=requires_signed("ingest:events"), response=answers(200, SlurmEventsOut),
    openapi_extra=DESCRIBED,
)  # fmt: skip
@idempotent
def ingest_slurm_events(request: HttpRequest, body: SlurmEventsIn) -> tuple[int, SlurmEventsOut]:
    """Send what hooks of Slurm said of jobs; told again, an event changes nothing. Accounting has the last word."""
    actor = actor_of(request)
    events = [services.HookEvent(one.hook, one.fired, one.values) for one in body.events]
    with services.feed_cluster(actor=actor, kind="events", name=body.cluster) as cluster:
        outcomes = services.record_hook_events(actor=actor, cluster=cluster, events=events)
    return 200, SlurmEventsOut(results=[SlurmEventResult(outcome=one.outcome, reason=one.reason) for one in outcomes])

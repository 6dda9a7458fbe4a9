"""What jobs used of their GPUs, as site automation sends it."""

from django.http import HttpRequest
from ninja import Router

from portal.core.idempotency import idempotent
from portal.core.problems import answers
from principals.auth import actor_of, requires
from telemetry import services
from telemetry.engine.gpu_use import GpuReading
from telemetry.schemas import GpuUseIn, GpuUseResult, GpuUsesIn, GpuUsesOut

router = Router()


@router.post("/gpu-utilisation", auth=requires("ingest:gpu"), response=answers(200, GpuUsesOut))
@idempotent
def ingest_gpu_utilisation(request: HttpRequest, body: GpuUsesIn) -> tuple[int, GpuUsesOut]:
    """Send what jobs used of their GPUs; the same job and GPU again replaces what is older."""
    actor = actor_of(request)
    readings = list(map(_reading, body.rows))
    with services.feed_cluster(actor=actor, kind="gpu", name=body.cluster) as cluster:
        outcomes = services.record_gpu_utilisation(actor=actor, cluster=cluster, readings=readings)
    return 200, GpuUsesOut(
        results=[GpuUseResult(outcome=one.outcome, reason=one.reason, waits=one.waits) for one in outcomes]
    )


def _reading(sent: GpuUseIn) -> GpuReading:
    return GpuReading(
        sent.job, sent.gpu, sent.compute_percent, sent.memory_percent, int(sent.measured.timestamp()),
        sent.peak_memory_bytes, sent.total_memory_bytes, sent.model, sent.memory_is_peak,
    )  # fmt: skip

"""The API of `telemetry`: what site automation sends, and the jobs an agent may read."""

from ninja import Router

from telemetry.api.activity import router as activity_router
from telemetry.api.gpu import router as gpu_router
from telemetry.api.hooks import router as hooks_router
from telemetry.api.ingest import router as ingest_router
from telemetry.api.jobs import router as jobs_router
from telemetry.api.otlp import router as otlp_router
from telemetry.api.slurm import router as slurm_router

router = Router()
router.add_router("/ingest", ingest_router)
router.add_router("/ingest", gpu_router)
router.add_router("/ingest", activity_router)
router.add_router("/ingest", hooks_router)
router.add_router("/jobs", jobs_router)
router.add_router("/otlp", otlp_router)
router.add_router("/slurm", slurm_router)

__all__ = ["router"]

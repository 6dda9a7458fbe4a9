"""Celery's edge of telemetry: hints at work that stands in rows."""

from celery import shared_task

from telemetry import services


@shared_task
def run_ingest_batch(batch_id: int) -> bool:
    """Work through an ingest batch."""
    return services.run_batch(batch_id)


@shared_task
def sweep_ingest_batches() -> int:
    """Send again the batches that nobody works on."""
    return services.sweep()


@shared_task
def tell_owed_arrays() -> int:
    """Tell of arrays what was held back within a second of the last time, where no reader does."""
    return services.tell_owed()


@shared_task
def prune_ingest() -> dict[str, int]:
    """Delete rows set aside and bodies left over past their keeping time."""
    return services.prune()


@shared_task
def refresh_rollups() -> int:
    """Recompute the rollups of what changed."""
    return services.refresh()


@shared_task
def refresh_gpu_rollups() -> int:
    """Recompute the rollups of GPU use of the days that changed."""
    return services.refresh_gpu_rollups()


@shared_task
def build_job_indexes() -> int:
    """Build the indexes of jobs that a load which was killed left out."""
    return services.build_missing()


@shared_task
def sweep_attributions() -> int:
    """Attribute anew the jobs that a process which ended left."""
    return services.sweep_attributions()


@shared_task
def match_gpu_utilisation() -> int:
    """Give readings of GPUs that came too early to their jobs."""
    return services.match_gpu_utilisation()


@shared_task
def refresh_activity() -> int:
    """Add up anew the days of login-node activity that changed."""
    return services.refresh_activity()


@shared_task
def end_silent_sessions() -> int:
    """End the sessions that no collector told of for two weeks."""
    return services.end_silent_sessions()


@shared_task
def refresh_harness_days() -> int:
    """Add up anew the days of which harnesses told more."""
    return services.refresh_harness_days()

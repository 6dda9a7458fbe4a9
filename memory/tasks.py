"""What `memory` does on its own."""

from celery import shared_task

from memory import services as memory_services


@shared_task
def prune_lookups() -> int:
    """Delete look-ups past their keeping time."""
    return memory_services.prune_lookups()

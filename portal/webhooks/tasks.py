"""Celery edge of the webhooks: hints at work that stands in rows."""

from celery import shared_task

from portal.webhooks import batches, courier


@shared_task
def deliver() -> int:
    """Send what is due."""
    return courier.deliver()


@shared_task
def prune() -> int:
    """Delete deliveries past their term."""
    return batches.prune()

"""Celery edge of `principals`."""

from celery import shared_task

from portal.core import leases
from principals import services as principal_services

REMINDER = "renewal-reminder"


@shared_task
def remind_of_renewals() -> int:
    """Announce the registrations that end soon, unless another process does."""
    with leases.held(REMINDER, seconds=300) as ours:
        return principal_services.remind_of_renewals() if ours else 0


@shared_task
def end_silent_check_ins() -> int:
    """End the sessions whose harness fell silent."""
    return principal_services.end_silent()

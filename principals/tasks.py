"""Celery edge of `principals`: notices, reminders, and what ends by itself."""

from celery import shared_task

from portal.core import leases
from principals import services as principal_services
from principals.services import rights
from principals.services.notices import postman, telling
from principals.services.notices import writing as notices
from principals.services.tokens import devices

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


@shared_task
def deliver_notices() -> int:
    """Mail what people are to be told."""
    return postman.deliver()


@shared_task
def prune_notices() -> int:
    """Delete notices past their term."""
    return notices.prune()


@shared_task
def prune_device_logins() -> int:
    """Delete logins of devices an hour after their end."""
    return devices.prune()


@shared_task
def tell_of_ending_tokens() -> int:
    """Tell owners of tokens that end soon."""
    return telling.tell_of_ending_tokens()


@shared_task
def tell_of_late_appeals() -> int:
    """Tell staff of appeals that wait past their time."""
    return rights.tell_of_late_appeals()

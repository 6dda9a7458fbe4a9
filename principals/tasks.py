"""Celery edge of `principals`: notices, and logins of devices that ended."""

from celery import shared_task

from principals.services import devices, notices, postman, rights, telling


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

"""Celery edge of `principals`: notices."""

from celery import shared_task

from principals.services import notices, postman, telling


@shared_task
def deliver_notices() -> int:
    """Mail what people are to be told."""
    return postman.deliver()


@shared_task
def prune_notices() -> int:
    """Delete notices past their term."""
    return notices.prune()


@shared_task
def tell_of_ending_tokens() -> int:
    """Tell owners of tokens that end soon."""
    return telling.tell_of_ending_tokens()

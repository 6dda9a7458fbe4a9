"""Celery edge of the reports."""

from celery import shared_task

from portal.core import clock
from portal.reports import services
from principals.actors import SYSTEM_ACTOR


@shared_task
def draft_last_month() -> int:
    """Draft last month's report of every cluster."""
    return services.draft_last_month(actor=SYSTEM_ACTOR, today=clock.now().date())

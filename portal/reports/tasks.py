"""Celery edge of the reports: hints at work that stands in rows."""

from celery import shared_task

from portal.core import clock
from portal.reports import drafting
from principals.actors import SYSTEM_ACTOR


@shared_task
def draft(drafting_id: int) -> bool:
    """Draft a period that was asked for."""
    return drafting.work_off(drafting_id)


@shared_task
def sweep_drafts() -> int:
    """Send again the periods that nobody drafts."""
    return drafting.sweep()


@shared_task
def draft_last_month() -> int:
    """Ask for last month's report of every cluster."""
    return drafting.ask_for_last_month(actor=SYSTEM_ACTOR, today=clock.now().date())


@shared_task
def draft_last_week() -> int:
    """Ask for last week's report of every cluster."""
    return drafting.ask_for_last_week(actor=SYSTEM_ACTOR, today=clock.now().date())

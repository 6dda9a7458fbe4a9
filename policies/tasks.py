"""Celery edge of `policies`."""

from dataclasses import asdict

from celery import shared_task

from policies import services as policy_services
from portal.core import leases

SETTLER = "trial-settler"
AUP_HOLDER = "aup-holder"
AUP_REMINDER = "aup-reminder"


@shared_task
def settle_trials() -> dict[str, int]:
    """Match jobs to trials and close receipts, unless another process does."""
    with leases.held(SETTLER, seconds=60) as ours:
        return asdict(policy_services.settle_trials()) if ours else {}


@shared_task
def hold_lapsed_aup() -> int:
    """Hold agents for which the policy was not accepted in time, unless another process does."""
    with leases.held(AUP_HOLDER, seconds=60) as ours:
        return policy_services.hold_lapsed_aup() if ours else 0


@shared_task
def remind_of_aup() -> int:
    """Tell people of a version that waits for them, unless another process does."""
    with leases.held(AUP_REMINDER, seconds=60) as ours:
        return policy_services.remind_of_aup() if ours else 0

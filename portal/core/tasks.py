"""Celery edge of the kernel: sealing and anchoring the audit trail, and keeping tables to their term."""

from celery import shared_task
from django.contrib.sessions.models import Session

from portal.core import anchors, audit, clock, idempotency, leases, live

SEALER = "audit-sealer"


@shared_task
def seal_audit() -> int:
    """Chain committed audit rows, unless another process does."""
    with leases.held(SEALER, seconds=60) as ours:
        return audit.seal_all() if ours else 0


@shared_task
def anchor_audit() -> int:
    """Note the chain's head outside the database."""
    return anchors.write_anchor()


@shared_task
def prune() -> dict[str, int]:
    """Delete live events, idempotency keys and browsers' sessions past their term."""
    sessions, _ = Session.objects.filter(expire_date__lt=clock.now()).delete()
    return {"live_events": live.prune(), "idempotency_keys": idempotency.prune(), "sessions": sessions}

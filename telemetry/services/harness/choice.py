"""Whether a person's harnesses may tell: the site's word, and theirs. Whoever says no leaves nothing behind."""

from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from django.db import transaction

from portal.core import audit, clock
from portal.core.errors import Conflict, NotAllowed
from principals.actors import Actor
from principals.models import Agent, User
from telemetry.models import HarnessChoice, HarnessDay, HarnessReading

OFF, ASK = "off", "ask"
_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STOP: Final = "Until then turn the exporter off (for Claude Code: unset CLAUDE_CODE_ENABLE_TELEMETRY)."


def allowed_since(owner: User) -> datetime:
    """Return from when on what the harnesses of a person's agents tell is taken.

    Errors: `NotAllowed` with `otlp_off`, `otlp_not_agreed`, `otlp_declined`.
    """
    if settings.OTLP == OFF:
        raise NotAllowed(
            "This site takes no harness telemetry.", code="otlp_off", remedy=f"Ask staff to turn it on. {_STOP}"
        )
    said = HarnessChoice.objects.filter(user=owner).first()
    if said is None and settings.OTLP == ASK:
        raise NotAllowed(
            "The person who answers for this agent has not agreed to harness telemetry.", code="otlp_not_agreed",
            remedy=f"They agree on the agent's page, under “Harness telemetry”. {_STOP}",
        )  # fmt: skip
    if said is not None and not said.agreed:
        raise NotAllowed(
            "The person who answers for this agent wants no harness telemetry.", code="otlp_declined",
            remedy=f"They can agree on the agent's page, under “Harness telemetry”. {_STOP}",
        )  # fmt: skip
    return said.at if said else _EVER


def is_allowed(owner: User) -> bool:
    """Say whether what the harnesses of a person's agents tell is taken."""
    try:
        allowed_since(owner)
    except NotAllowed:
        return False
    return True


def choose_harness_telemetry(*, actor: Actor, agreed: bool) -> None:
    """Let a person agree for all their agents, or decline: then what was kept of them is deleted.

    Errors: `NotAllowed` for whoever is no person, `Conflict` `otlp_off` for an agreement that would mean nothing.
    """
    user = actor.user
    if user is None or not actor.is_person:
        raise NotAllowed("Only a person decides this, for their own agents.", code="not_a_person")
    if agreed and settings.OTLP == OFF:
        raise Conflict(
            "This site takes no harness telemetry.", code="otlp_off", remedy="Ask staff to turn it on first."
        )
    with transaction.atomic():
        # Who stores what an agent told holds its row: so nothing is stored after this that it did not see.
        agents = list(Agent.objects.select_for_update(no_key=True).filter(owner=user).order_by("pk"))
        before = HarnessChoice.objects.filter(user=user).first()
        if before is not None and before.agreed == agreed:
            return
        HarnessChoice.objects.update_or_create(user=user, defaults={"agreed": agreed, "at": clock.now()})
        deleted = 0
        if not agreed:
            HarnessReading.objects.filter(agent__in=agents).delete()
            deleted, _ = HarnessDay.objects.filter(agent__in=agents).delete()
        audit.record(
            actor=actor.ref, verb="harness_telemetry.agree" if agreed else "harness_telemetry.decline",
            object_kind="user", object_id=user.pk, object_label=user.username, after={"days_deleted": deleted},
        )  # fmt: skip

"""What the trials of the last rolling day add up to."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from policies.models import TrialGrant, TrialRefusal
from policies.selectors.trials import WINDOW, median
from portal.core import clock
from principals.actors import Actor


@dataclass(frozen=True, slots=True)
class TrialDay:
    """Trials of the last 24 hours; cancelled ones are not counted as granted."""

    granted: int
    people: int
    labs: int
    used: int  # those whose job is known
    refused: int
    reasons: tuple[tuple[str, int], ...]  # first reasons by code, most frequent first
    gpu_minutes: float
    start_after_s: float | None  # median wait of their jobs; None where none is known

    @property
    def refused_share(self) -> float | None:
        """Refusals among requests."""
        asked = self.granted + self.refused
        return self.refused / asked if asked else None


def trial_day(actor: Actor, *, now: datetime | None = None) -> TrialDay:
    """Return the figures of the last day over the trials the actor may see."""
    since = (now or clock.now()) - WINDOW
    grants = TrialGrant.objects.visible_to(actor).charged().filter(granted_at__gt=since).order_by()
    counted = grants.aggregate(
        granted=Count("pk"),
        people=Count("user", distinct=True),
        labs=Count("lab", distinct=True),
        used=Count("pk", filter=Q(state=TrialGrant.State.USED)),
    )
    refusals = TrialRefusal.objects.visible_to(actor).filter(at__gt=since).order_by()
    reasons = sorted(
        refusals.values_list("code").annotate(number=Count("pk")), key=lambda pair: (-pair[1], pair[0])
    )  # fmt: skip
    started = grants.filter(job__start__isnull=False).values_list("job__submit", "job__start")
    return TrialDay(
        **counted,
        refused=sum(number for _, number in reasons),
        reasons=tuple(reasons),
        gpu_minutes=float(sum(grants.values_list("gpu_minutes", flat=True))),
        start_after_s=median([(start - submit).total_seconds() for submit, start in started if start and submit]),
    )

"""Adding up what harnesses told, session by session and day by day. Never incremented.

A reading marks its day `stale` and gives it another `stamp`; who adds it up writes only where the stamp is still the
one they began with, so that what comes meanwhile leaves the day marked.
"""

from datetime import timedelta
from typing import Final

from django.db.models import Q

from portal.core import clock, stopping
from principals.models import AgentSession
from telemetry.engine.otel.reading import CUMULATIVE
from telemetry.engine.otel.sums import add_up
from telemetry.models import HarnessChoice, HarnessDay, HarnessReading
from telemetry.services.activity.days import oldest_day_kept

_AT_ONCE: Final = 2000


def refresh_harness_days() -> int:
    """Add up anew the days that are marked, newest first; return how many were."""
    done = 0
    for day in HarnessDay.objects.filter(stale=True).select_related("agent").order_by("-day", "pk")[:_AT_ONCE]:
        if stopping.asked():
            break
        done += _refresh(day)
    return done


def _refresh(day: HarnessDay) -> int:
    """Add up one day. One some of whose readings are gone keeps what it has."""
    now = HarnessDay.objects.filter(pk=day.pk, stamp=day.stamp)
    if day.day < oldest_day_kept():
        return now.update(stale=False)
    return now.update(counts=_counts_of(day), session=_session_of(day), stale=False)


def _counts_of(day: HarnessDay) -> dict[str, int]:
    midnight = clock.midnight(day.day)
    told = HarnessReading.objects.filter(agent=day.agent_id, session_key=day.session_key)
    today = told.filter(at__gte=midnight, at__lt=midnight + timedelta(days=1)).values_list("source", "parts")
    before = told.filter(at__lt=midnight, source=CUMULATIVE).order_by("at").values_list("parts", flat=True)
    said = HarnessChoice.objects.filter(user=day.agent.owner_id, agreed=True).first()
    since_ns = int(said.at.timestamp() * 1_000_000) * 1000 if said else 0
    return add_up(today.iterator(), before.iterator(), since_ns=since_ns)


def _session_of(day: HarnessDay) -> AgentSession | None:
    """Return the session of the agent that was open while this was told; None where it can have been several."""
    seen = AgentSession.objects.filter(
        Q(ended=None) | Q(ended__gte=day.first), agent=day.agent_id, harness=day.harness, started__lte=day.last
    )
    found = list(seen.order_by("pk")[:2])
    return found[0] if len(found) == 1 else None

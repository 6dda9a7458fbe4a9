"""When agents and people submit, and how long their jobs run."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Sum

from principals import permissions
from telemetry.engine import usage
from telemetry.engine.packed import sum_packed
from telemetry.models import Actor, RollupHistogram, RollupHour
from telemetry.selectors.scope import Scope
from telemetry.selectors.totals import ratio

Week = tuple[tuple[int, ...], ...]
WORKING_DAYS = range(5)  # Monday to Friday
WORKING_HOURS = range(8, 18)


@dataclass(frozen=True, slots=True)
class HourOfWeek:
    """Submissions by weekday (0 is Monday) and hour, in the facility's zone: a 7 × 24 matrix for each actor."""

    zone: str
    counts: dict[str, Week]

    def total(self, actor: str) -> int:
        """Return all submissions of an actor."""
        return sum(map(sum, self.counts[actor]))

    def shares(self, actor: str) -> tuple[tuple[float, ...], ...]:
        """Return the matrix as shares of the actor's own week; zeros where it submitted nothing."""
        total = self.total(actor)
        return tuple(tuple(ratio(count, total) or 0.0 for count in day) for day in self.counts[actor])

    def within(self, actor: str) -> int:
        """Return the submissions Monday to Friday, 08:00 to 18:00."""
        return sum(self.counts[actor][day][hour] for day in WORKING_DAYS for hour in WORKING_HOURS)

    def outside_share(self, actor: str) -> float | None:
        """Return the share of submissions outside Monday to Friday, 08:00 to 18:00; None without any."""
        total = self.total(actor)
        return ratio(total - self.within(actor), total)


def hour_of_week(scope: Scope) -> HourOfWeek:
    """Count submissions by hour of the week; one query. For those who look at the whole facility.

    An hour of UTC counts under the local hour it begins in; daylight saving time moves it as it moved people.
    """
    permissions.require(scope.actor, "facility.look")
    zone = ZoneInfo(settings.FACILITY_TIME_ZONE)
    rows = (
        RollupHour.objects.filter(
            cluster=scope.cluster, hour__gte=scope.period.starts, hour__lt=scope.period.ends, submissions__gt=0
        )
        .values_list("actor", "hour")
        .annotate(submitted=Sum("submissions"))
    )
    counts = {actor.value: [[0] * 24 for _ in range(7)] for actor in Actor}
    for actor, hour, submitted in rows:
        local: datetime = hour.astimezone(zone)
        counts[actor][local.weekday()][local.hour] += submitted
    return HourOfWeek(zone.key, {actor: tuple(tuple(day) for day in week) for actor, week in counts.items()})


@dataclass(frozen=True, slots=True)
class Runtimes:
    """The runtime histogram of jobs that ended after having started (buckets of `engine.usage.RUNTIME_EDGES_S`)."""

    counts: tuple[int, ...]

    @property
    def jobs(self) -> int:
        return sum(self.counts)

    @property
    def median_s(self) -> float | None:
        """The median run time, interpolated inside its bucket."""
        return usage.histogram_median(self.counts)

    def share_within(self, limit_s: int) -> float | None:
        """Return the share of jobs that ran at most `limit_s`, which must be an edge."""
        return usage.share_within(self.counts, limit_s)

    def cumulative(self) -> list[tuple[int, float]]:
        """Return (seconds, share of jobs that ran at most so long) at every edge; empty without jobs."""
        if not self.jobs:
            return []
        return [(edge, sum(self.counts[: n + 1]) / self.jobs) for n, edge in enumerate(usage.RUNTIME_EDGES_S)]


def runtimes(scope: Scope) -> dict[str, Runtimes]:
    """Read the runtime histogram of each actor; one query."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    if scope.lab is None and scope.actor.sees_facility:
        days = {"day__gte": scope.period.first, "day__lte": scope.period.last}
        rows = RollupHistogram.objects.filter(cluster=scope.cluster, **days).values_list("actor", "bucket")
        for actor, bucket, ended in rows.annotate(ended=Sum("jobs")).order_by():
            found[actor][bucket] = ended
    else:
        packed: dict[str, list[str]] = defaultdict(list)
        for actor, text in scope.users().order_by().values_list("actor", "runtimes"):
            packed[actor].append(text)
        found.update({actor: sum_packed(texts) for actor, texts in packed.items()})
    return {
        actor.value: Runtimes(tuple(found[actor.value].get(n, 0) for n in range(usage.RUNTIME_BUCKETS)))
        for actor in Actor
    }

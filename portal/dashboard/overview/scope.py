"""What the Overview is asked for by its address: cluster, period, definition of an agent."""

from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode

from portal.core.errors import Invalid, NotFound
from portal.dashboard.formats import date_range
from principals import permissions
from principals.models import Cluster
from principals.web import PageRequest
from telemetry.figures import Readings, readings_of
from telemetry.models import RollupDay
from telemetry.selectors import Definition, Period, Scope

DAYS = {"7": 7, "30": 30, "90": 90}
DEFAULT = "30"
MONTHS_OFFERED = 6


@dataclass(frozen=True, slots=True)
class Asked:
    """The scope asked for, its readings, and how to say and repeat it."""

    readings: Readings
    definition: Definition
    period_key: str

    @property
    def scope(self) -> Scope:
        return self.readings.scope

    @property
    def query(self) -> str:
        """The query string that asks for the same again."""
        return urlencode(
            {"cluster": self.scope.cluster.name, "period": self.period_key, "definition": self.definition.value}
        )

    def jobs_url(self, **filters: str) -> str:
        """Return the job list's address with the filters of this scope and more."""
        return "/jobs/?" + urlencode(self.scope.query | filters)


def read(request: PageRequest, *, strict: bool = False) -> Asked | None:
    """Read the address; None where no cluster has data.

    What is not known falls back, and the page's filters say so. A download says nothing: `strict` raises `NotFound`
    for an unknown cluster and `Invalid` for another period.
    """
    permissions.require(request.actor, "facility.look", remedy="My lab shows what is yours.")
    cluster = _cluster(request.GET.get("cluster", ""), strict=strict)
    if cluster is None:
        return None
    period, key = _period(cluster, request.GET.get("period", DEFAULT), strict=strict)
    wanted = request.GET.get("definition", "")
    definition = Definition(wanted) if wanted in Definition.__members__.values() else Definition.JOB
    return Asked(readings_of(Scope(request.actor, cluster, period)), definition, key)


def _period(cluster: Cluster, key: str, *, strict: bool) -> tuple[Period, str]:
    """Return the period of a key, and the key in force."""
    if key in DAYS:
        return _last_days(cluster, DAYS[key]), key
    try:
        return Period.parse_month(key), key
    except Invalid:
        if strict:
            raise
        return _last_days(cluster, DAYS[DEFAULT]), DEFAULT


def _cluster(name: str, *, strict: bool) -> Cluster | None:
    if found := Cluster.objects.named(name).first():
        return found
    if name and strict:
        raise NotFound(f"No cluster is called {name[:40]}.")
    # Cluster by cluster, for that is where the index leads.
    newest = [(last, one.pk, one) for one in Cluster.objects.all() if (last := _edge_of(one, "-day"))]
    return max(newest)[-1] if newest else None


def _edge_of(cluster: Cluster, order: str) -> date | None:
    """Return the first (`day`) or last (`-day`) day that has data."""
    return RollupDay.objects.filter(cluster=cluster).order_by(order).values_list("day", flat=True).first()


def _last_days(cluster: Cluster, days: int) -> Period:
    """Return the last days that have data: a log of last year is shown, not an empty present."""
    last = _edge_of(cluster, "-day")
    today = Period.last_days(days)
    if last is None or last >= today.first:
        return today
    return Period(date.fromordinal(last.toordinal() - days + 1), last)


def choices(asked: Asked) -> dict[str, list[tuple[str, str]]]:
    """Return the options of the page's three selects."""
    months = _months(asked.scope.cluster)
    return {
        "clusters": [(name, name) for name in Cluster.objects.order_by("name").values_list("name", flat=True)],
        "periods": [
            *((key, f"Last {days} days") for key, days in DAYS.items()),
            *((f"{month:%Y-%m}", f"{month:%B %Y}") for month in months),
        ],
        "definitions": [("job", "Job fell into an agent session"), ("account", "Account had agent sessions")],
    }


def _months(cluster: Cluster) -> list[date]:
    """Return the first days of the months from the newest data to the oldest, `MONTHS_OFFERED` at most."""
    first, last = _edge_of(cluster, "day"), _edge_of(cluster, "-day")
    if first is None or last is None:
        return []
    count = (last.year - first.year) * 12 + last.month - first.month + 1
    newest = last.year * 12 + last.month - 1
    return [date((newest - back) // 12, (newest - back) % 12 + 1, 1) for back in range(min(count, MONTHS_OFFERED))]


def period_words(period: Period) -> str:
    """Say a period."""
    return date_range(period.first, period.last)

"""What jobs use of their GPUs, and what they hold and need not: jobs with GPUs that ended in the period.

A job counts whole on the day of its end, for readings are of whole jobs. Those nobody measured are always counted too.
Sums are from the daily rollups; what would have fit, and how many people there are, only the jobs themselves tell.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from django.db.models import BooleanField, Count, ExpressionWrapper, Q, Sum

from principals.models import Lab
from telemetry.engine import cells
from telemetry.engine.gpu_use import Fit, Quadrant
from telemetry.models import Actor
from telemetry.selectors.gpu_jobs import SUMS, gpu_jobs, renamed
from telemetry.selectors.scope import Scope
from telemetry.selectors.totals import HOUR_S, ratio

TOP: Final = 10
_SUMS: Final[dict[str, Any]] = {
    "jobs": Sum("jobs", default=0),
    "held_s": Sum("held_s", default=0),
    "measured_jobs": Sum("jobs", filter=~Q(quadrant=""), default=0),
    "measured_s": Sum("measured_s", default=0),
    "stranded_s": Sum("stranded_s", default=0),
    "peaks": Sum("peaks", default=0),
}


@dataclass(frozen=True, slots=True)
class GpuSum:
    """What some jobs held and used, GPU-seconds; `stranded_s` as `telemetry.engine.gpu_use.STRANDED_WORDS` says.

    `peaks` counts jobs whose memory is their peak, for their source knew no mean.
    """

    jobs: int = 0
    held_s: int = 0
    measured_jobs: int = 0
    measured_s: int = 0
    stranded_s: int = 0
    peaks: int = 0

    def __add__(self, other: "GpuSum") -> "GpuSum":
        return GpuSum(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def unmeasured_jobs(self) -> int:
        return self.jobs - self.measured_jobs

    @property
    def held_hours(self) -> float:
        return self.held_s / HOUR_S

    @property
    def measured_hours(self) -> float:
        return self.measured_s / HOUR_S

    @property
    def stranded_hours(self) -> float:
        return self.stranded_s / HOUR_S

    @property
    def stranded_share(self) -> float | None:
        """Of the GPU-hours that were measured."""
        return ratio(self.stranded_s, self.measured_s)


@dataclass(frozen=True, slots=True)
class GpuSplit:
    """The four-way split by actor; the quadrant "" is of jobs that nobody measured."""

    parts: dict[tuple[str, str], GpuSum]

    def of(self, *, actor: str = "", quadrant: str | None = None) -> GpuSum:
        """Add up an actor's jobs, or everybody's, of a quadrant or of all."""
        wanted = (
            part for (who, where), part in self.parts.items()
            if actor in ("", who) and (quadrant is None or quadrant == where)
        )  # fmt: skip
        return sum(wanted, GpuSum())

    def share(self, quadrant: str, actor: str = "") -> float | None:
        """Return a quadrant's share of the jobs that were measured."""
        return ratio(self.of(actor=actor, quadrant=quadrant).jobs, self.of(actor=actor).measured_jobs)

    @property
    def partly_unused_share(self) -> float | None:
        """Return the share of measured jobs that are not heavy on both."""
        both = self.share(Quadrant.BOTH)
        return None if both is None else 1 - both


def gpu_split(scope: Scope) -> GpuSplit:
    """Split jobs by actor and quadrant, each always there; one query."""
    rows: Any = scope.gpus().values("actor", "quadrant").annotate(**renamed(_SUMS)).order_by()
    found = {(row["actor"], row["quadrant"]): _read(row) for row in rows}
    quadrants = (*(one.value for one in Quadrant), "")
    keys = [(actor, quadrant) for actor in Actor.values for quadrant in quadrants]
    return GpuSplit({key: found.get(key, GpuSum()) for key in keys})


def gpu_fits(scope: Scope) -> dict[str, GpuSum]:
    """Split jobs by what would have done for them, "" for those that nobody measured; one query over the jobs."""
    sums = {**SUMS, "measured_jobs": Count("gpu_use")}
    rows: Any = gpu_jobs(scope).values("gpu_use__fit").annotate(**renamed(sums)).order_by()
    found = {row["gpu_use__fit"] or "": _read(row) for row in rows}
    return {fit: found.get(fit, GpuSum()) for fit in (*(one.value for one in Fit), "")}


@dataclass(frozen=True, slots=True)
class GpuGroup:
    """The GPUs of one partition or lab. `key` is its name, "" for the rest, of `members` groups."""

    key: str
    title: str
    people: int
    sums: GpuSum
    members: int = 1


@dataclass(frozen=True, slots=True)
class GpuGroups:
    """Groups by stranded GPU-hours, and what is left in one row; `withheld` of those for want of five people."""

    rows: tuple[GpuGroup, ...]
    withheld: int


def gpu_by_partition(scope: Scope, *, limit: int = TOP) -> GpuGroups:
    """Split jobs by partition, most stranded first; two queries."""
    return _by(scope, "partition", limit)


def gpu_by_lab(scope: Scope, *, limit: int = TOP) -> GpuGroups:
    """Split jobs by lab, most stranded first; at most three queries."""
    groups = _by(scope, "lab_id", limit)
    labs = {str(lab.pk): lab for lab in Lab.objects.filter(pk__in=[row.key for row in groups.rows if row.key])}
    rows = (
        replace(row, key=labs[row.key].name, title=labs[row.key].title) if row.key else row for row in groups.rows
    )  # fmt: skip
    return GpuGroups(tuple(rows), groups.withheld)


def _by(scope: Scope, column: str, limit: int) -> GpuGroups:
    everybody: dict[str, set[int]] = defaultdict(set)
    measured: dict[str, set[int]] = defaultdict(set)
    has_use = ExpressionWrapper(Q(gpu_use__isnull=False), output_field=BooleanField())
    # Pairs, not counts: PostgreSQL counts distinct users by sorting all jobs.
    for key, user, of_use in gpu_jobs(scope).order_by().values_list(column, "cluster_user", has_use).distinct():
        everybody[str(key)].add(user)
        if of_use:
            measured[str(key)].add(user)

    def people_behind(keys: Iterable[str]) -> int:
        """Count those whose jobs were measured, for what is said is of these; everybody where nobody's were."""
        of_use = set[int]().union(*(measured[key] for key in keys))
        return len(of_use or set[int]().union(*(everybody[key] for key in keys)))

    found = scope.gpus().values(column).annotate(**renamed(_SUMS)).order_by(column)
    groups = [
        GpuGroup(key := str(row[column]), key or "No name", people_behind([key]), _read(row)) for row in found
    ]  # fmt: skip
    groups.sort(key=lambda one: (-one.sums.stranded_s, -one.sums.held_s))

    def people_in(some: Sequence[GpuGroup]) -> int:
        return people_behind([one.key for one in some])

    shown, rest = cells.withhold(groups, limit=limit, people_in=people_in)
    if rest:
        whole = sum((one.sums for one in rest), GpuSum())
        shown.append(GpuGroup("", "All others", 0, whole, len(rest)))
    return GpuGroups(tuple(shown), sum(not cells.enough(one.people) for one in rest))


def _read(row: Mapping[str, Any]) -> GpuSum:
    return GpuSum(**{name: row[f"{name}_"] for name in _SUMS})

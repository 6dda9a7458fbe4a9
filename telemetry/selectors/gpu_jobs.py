"""Jobs with GPUs and what they come to: what the daily rollups are computed from, and what these cannot tell."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db.models import BigIntegerField, Case, Count, F, FloatField, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Cast, Floor

from telemetry.models import Job
from telemetry.selectors.scope import Scope

# Two sources may name a GPU each in its own way: no more was measured than there was.
_MEASURED: Final = Case(When(gpu_use__gpus__gt=F("gpus"), then=F("gpus")), default=F("gpu_use__gpus"))
_MEASURED_S: Final = _MEASURED * F("elapsed_s")
_STRANDED_S: Final = Cast(_MEASURED_S, FloatField()) * (Value(100.0) - F("gpu_use__used_percent")) / Value(100.0)
# As `RollupGpu` says it.
SUMS: Final[dict[str, Any]] = {
    "jobs": Count("pk"),
    "held_s": Sum(F("gpus") * F("elapsed_s"), default=0),
    "measured_s": Sum(_MEASURED_S, default=0),
    "stranded_s": Sum(Cast(Floor(_STRANDED_S + Value(0.5)), BigIntegerField()), default=0),
    "peaks": Count("pk", filter=Q(gpu_use__memory_is_peak=True)),
}


def on_gpus(jobs: QuerySet[Job], starts: datetime, ends: datetime) -> QuerySet[Job]:
    """Narrow jobs to those with GPUs that ended within [starts, ends) after having started."""
    return jobs.filter(
        gpus__gt=0, start__isnull=False, end__isnull=False, usage_end__gte=starts, usage_end__lt=ends
    )  # fmt: skip


def gpu_jobs(scope: Scope) -> QuerySet[Job]:
    """Return the jobs with GPUs that ended in the period after having started, as `scope` may see them."""
    seen = Job.objects.visible_to(scope.actor).filter(cluster=scope.cluster)
    jobs = on_gpus(seen, scope.period.starts, scope.period.ends)
    return jobs.filter(lab=scope.lab) if scope.lab else jobs


def renamed(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return sums under names of their own: an aggregate must not stand in for the column it is named like."""
    return {f"{name}_": expression for name, expression in sums.items()}

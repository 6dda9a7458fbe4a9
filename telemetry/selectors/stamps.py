"""A stamp of what the reports of some days are made from: another one where any of it was computed anew.

Rollups are replaced, never changed in place, so the newest row and their number tell of every replacement: ingest
writes nothing for this. Sessions and requests of gateways are changed in place, so their ends and sums are looked at.
"""

from typing import Any, Final

from django.db.models import BigIntegerField, Count, Max, Model, Q, QuerySet, Sum

from principals.models import AgentSession
from telemetry.models import (
    ActivityDay,
    ActivityDirty,
    GatewayDay,
    RollupDirty,
    RollupGpu,
    RollupGpuDirty,
    RollupUser,
)
from telemetry.selectors.scope import Scope

_SECONDS: Final = BigIntegerField()


def stamp(scope: Scope) -> str:
    """Return the stamp of a whole cluster's days: eight queries, each of an index of the days."""
    period, cluster = scope.period, scope.cluster
    days: list[QuerySet[Any]] = [
        model.objects.filter(period.holds_day, cluster=cluster) for model in (RollupUser, RollupGpu, ActivityDay)
    ]
    numbers = [value for rows in days for value in _of(rows)]
    # What is marked will be computed anew.
    marks: list[type[Model]] = [RollupDirty, RollupGpuDirty, ActivityDirty]
    numbers += [model._default_manager.filter(period.holds_day, cluster=cluster).count() for model in marks]
    numbers += _of(GatewayDay.objects.filter(period.holds_day, cluster=cluster), Sum("requests"), Sum("submissions"))
    ended = Q(ended__gte=period.starts, ended__lt=period.ends)
    sessions = AgentSession.objects.filter(period.meets_session, cluster=cluster)
    numbers += _of(sessions, Count("pk", filter=ended), Sum("ended", filter=ended, output_field=_SECONDS))
    return " ".join("-" if value is None else str(value) for value in numbers)


def _of(rows: QuerySet[Any], *more: Any) -> list[Any]:
    asked = dict(zip("abcd", (Max("pk"), Count("pk"), *more), strict=False))
    return list(rows.order_by().aggregate(**asked).values())

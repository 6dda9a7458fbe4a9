"""By which evidence jobs were attributed, and how often evidence spoke against evidence."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from django.db.models import Sum

from principals.actors import Actor as Principal
from principals.models import Cluster
from telemetry.models import Job
from telemetry.selectors.scope import Scope

NEWEST: Final = 20_000  # submissions that a page looks at: some thirty milliseconds


def methods(scope: Scope) -> Mapping[str, int]:
    """Return how many submissions of a period each method attributed: one query over all of its jobs."""
    jobs = Job.objects.visible_to(scope.actor).filter(
        cluster=scope.cluster, submit__gte=scope.period.starts, submit__lt=scope.period.ends
    )
    if scope.lab:
        jobs = jobs.filter(lab=scope.lab)
    counted = jobs.order_by().values_list("actor_method").annotate(submissions=Sum("array_tasks"))
    return dict(counted)


def newest_methods(actor: Principal, cluster: Cluster) -> Mapping[str, int]:
    """Return how many of the newest records of a cluster each method attributed: one query, however many there are."""
    newest = Job.objects.visible_to(actor).filter(cluster=cluster).order_by("-submit")
    return Counter(newest.values_list("actor_method", flat=True)[:NEWEST])

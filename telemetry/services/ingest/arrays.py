"""Array jobs as live events: how many tasks are in which state, once a second at most.

Whoever listens to a person's, a lab's or a cluster's jobs hears of an array of more than `FEW` tasks by these alone:
its tasks' own events go to the topics of these jobs. Counts are worked out from the rows, never added up. A change
within a second of what was told is owed: a row says so in the same transaction, and `tell_owed` tells the last state.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Max, QuerySet, Sum

from portal.core import clock, live
from portal.core.live import News
from principals.models import Cluster, Lab
from telemetry.engine.slurm.records import is_label
from telemetry.engine.slurm.values import CLOSED_STRETCH_STATES
from telemetry.engine.transitions import ARRAY, describe_outcome
from telemetry.engine.waiting import SAME_JOB_S, Record, Standing, describe_counts, stand
from telemetry.events import ArrayNews
from telemetry.models import ArrayTold, Job

if TYPE_CHECKING:
    from telemetry.services.ingest.news import JobChange

FEW: Final = 20
_PART: Final = 100  # arrays of one transaction


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose an array is, as one of its tasks says, and when that was submitted."""

    user_id: int
    login: str
    lab_id: int
    campaign: str
    submit: datetime

    def wide_topics(self, cluster: Cluster) -> list[str]:
        """Return the topics of more than one job: its person's, lab's and cluster's, and its campaign's."""
        named = [f"campaign:{self.user_id}:{self.campaign}"] if is_label(self.campaign) else []
        return [f"user-jobs:{self.user_id}", f"lab-jobs:{self.lab_id}", f"all-jobs:{cluster.name}", *named]


class Arrays:
    """The arrays of some changes that were just written: two queries at most, none where no task changed."""

    def __init__(self, cluster: Cluster, changes: Iterable["JobChange"]) -> None:
        self.cluster = cluster
        self._whose: dict[int, Whose] = {}  # by the last of its changes
        for change in changes:
            if change.record.array_job_id is not None:
                self._whose[change.record.array_job_id] = change.whose
        self._standings = _count(cluster, {array: whose.submit for array, whose in self._whose.items()})

    def is_summarised(self, change: "JobChange") -> bool:
        """Say whether a change is one of an array's that is too large for a word about each task."""
        standing = self._standings.get(change.record.array_job_id or 0)
        return standing is not None and _tasks(standing) > FEW

    def tell(self, labs: Mapping[int, str]) -> list[News]:
        """Return one live event for each array that may be told of now; note what is owed of the others.

        Call it in the transaction that wrote the changes, with the cluster's row locked.
        """
        if not self._standings:
            return []
        told = ArrayTold.objects.filter(cluster=self.cluster, array_job_id__in=self._standings)
        rows = {row.array_job_id: row for row in told.select_for_update().order_by("pk")}
        now, news = clock.now(), list[News]()
        new, old = list[ArrayTold](), list[ArrayTold]()
        for array, standing in self._standings.items():
            whose, row, facts = self._whose[array], rows.get(array), _facts(standing)
            if row is None:
                row = ArrayTold(cluster=self.cluster, array_job_id=array, submit=whose.submit, told=now)
                new.append(row)
            else:
                old.append(row)
            row.submit = whose.submit
            row.is_owed = row.facts != facts
            if row.is_owed and (row.pk is None or row.may_be_told(now)):
                row.told, row.facts, row.is_owed = now, facts, False
                news.append(_news(self.cluster, array, standing, whose, labs[whose.lab_id]))
        ArrayTold.objects.bulk_create(new)
        ArrayTold.objects.bulk_update(old, ["submit", "told", "facts", "is_owed"])
        return news


def tell_owed(cluster: Cluster | None = None) -> int:
    """Tell how the arrays stand that changed since they were told of, a second after that; return how many were told.

    Whose row another process has locked is left to it: it tells, or owes. So none is told twice, and none is lost.
    """
    told = 0
    due = ArrayTold.objects.due(clock.now())
    owing = due.filter(cluster=cluster) if cluster else due
    for each in Cluster.objects.filter(pk__in=set(owing.values_list("cluster_id", flat=True))).order_by("pk"):
        told += _tell_owed(each)
    return told


def _tell_owed(cluster: Cluster) -> int:
    with transaction.atomic():
        now = clock.now()
        due = ArrayTold.objects.due(now).filter(cluster=cluster).order_by("told", "pk")
        # Counted once the row is ours: whoever changes the array commits before that, or waits and then owes.
        rows = {row.array_job_id: row for row in due.select_for_update(skip_locked=True, of=("self",))[:_PART]}
        submits = {array: row.submit for array, row in rows.items()}
        standings, whose = _count(cluster, submits), _find_whose(cluster, submits)
        labs = dict(Lab.objects.filter(pk__in={each.lab_id for each in whose.values()}).values_list("pk", "name"))
        news = []
        for array, row in rows.items():
            row.is_owed = False
            standing = standings.get(array)
            if standing is None or array not in whose or row.facts == _facts(standing):
                continue  # its jobs are gone, or it is again as it was told
            row.told, row.facts = now, _facts(standing)
            news.append(_news(cluster, array, standing, whose[array], labs[whose[array].lab_id]))
        ArrayTold.objects.bulk_update(rows.values(), ["told", "facts", "is_owed"])
        return live.announce(news)


def _facts(standing: Standing) -> dict[str, Any]:
    """Return what makes an array's standing another one, as JSON keeps it."""
    return {"counts": dict(sorted(standing.counts.items())), "over": standing.is_over, "status": standing.status}


def _news(cluster: Cluster, array: int, standing: Standing, whose: Whose, lab: str) -> News:
    topics = [f"array:{cluster.name}:{array}"]
    if _tasks(standing) > FEW:
        topics += whose.wide_topics(cluster)
    payload = _payload(cluster, array, standing, whose, lab)
    return News(name=ARRAY, topics=tuple(topics), payload={**payload}, at=clock.now())


def _payload(cluster: Cluster, array: int, standing: Standing, whose: Whose, lab: str) -> ArrayNews:
    place, base = f"{cluster.name}/{array}", settings.BASE_URL
    worst = standing.worst
    outcome = describe_outcome(worst.state, worst.exit_code, worst.exit_signal) if worst else ""
    text = describe_counts(standing.counts)
    return ArrayNews(
        job_id=str(array), raw_id=array, cluster=cluster.name, state=standing.state, counts=standing.counts,
        tasks=_tasks(standing), over=standing.is_over, exit_status=standing.status, worst=outcome,
        text=f"array: {text}", user=whose.login, lab=lab, campaign=whose.campaign,
        page=f"{base}/jobs/{place}/", api=f"{base}/api/v1/jobs/standing?cluster={cluster.name}&ids={array}",
    )  # fmt: skip


def _tasks(standing: Standing) -> int:
    return sum(standing.counts.values())


def _records(cluster: Cluster, submits: Mapping[int, datetime]) -> QuerySet[Job]:
    # Numbers begin anew after some years: an older array of the same is another one. By the oldest of these arrays,
    # for one that waited for weeks may change beside one of today.
    since = min(submits.values()) - timedelta(seconds=SAME_JOB_S)
    return Job.objects.filter(cluster=cluster, array_job_id__in=submits, submit__gte=since)


def _count(cluster: Cluster, submits: Mapping[int, datetime]) -> dict[int, Standing]:
    """Return how arrays stand, given when a task of each was submitted."""
    if not submits:
        return {}
    columns = ("array_job_id", "state", "exit_code", "exit_signal")
    # A stretch that a requeue closed is no task: the task's next record counts.
    same = _records(cluster, submits).exclude(state__in=CLOSED_STRETCH_STATES)
    rows = same.values_list(*columns).annotate(tasks=Sum("array_tasks"))
    groups: dict[int, list[Record]] = defaultdict(list)
    for array, state, code, signal, tasks in rows:
        groups[array].append(Record(str(array), state, 0, None, code or 0, signal or 0, tasks))
    standings = {array: stand(groups[array], now_s=0) for array in submits}
    return {array: standing for array, standing in standings.items() if standing is not None}


def _find_whose(cluster: Cluster, submits: Mapping[int, datetime]) -> dict[int, Whose]:
    if not submits:
        return {}
    newest = _records(cluster, submits).values("array_job_id").annotate(newest=Max("pk")).values("newest")
    columns = ("array_job_id", "cluster_user_id", "cluster_user__login", "lab_id", "campaign", "submit")
    return {array: Whose(*of) for array, *of in Job.objects.filter(pk__in=newest).values_list(*columns)}

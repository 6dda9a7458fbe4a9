"""Array jobs as live events: how many tasks are in which state, once for each batch of changes.

Whoever listens to a person's, a lab's or a cluster's jobs hears of an array of more than `FEW` tasks by these alone:
its tasks' own events go to the topics of these jobs. Counts are worked out from the rows, never added up.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Sum

from portal.core import clock
from portal.core.live import News
from principals.models import Cluster
from telemetry.engine.slurm.values import CLOSED_STRETCH_STATES
from telemetry.engine.transitions import ARRAY, describe_outcome
from telemetry.engine.waiting import SAME_JOB_S, Record, Standing, describe_counts, stand
from telemetry.events import ArrayNews
from telemetry.models import Job

if TYPE_CHECKING:
    from telemetry.services.ingest.news import JobChange

FEW: Final = 20


class Arrays:
    """The arrays of some changes that were just written: two queries at most, none where no task changed."""

    def __init__(self, cluster: Cluster, changes: Iterable["JobChange"]) -> None:
        self.cluster = cluster
        self._last: dict[int, JobChange] = {}  # of each array one change: whose it is
        for change in changes:
            if change.record.array_job_id is not None:
                self._last[change.record.array_job_id] = change
        self._standings = _count(cluster, self._last)

    def is_summarised(self, change: "JobChange") -> bool:
        """Say whether a change is one of an array's that is too large for a word about each task."""
        standing = self._standings.get(change.record.array_job_id or 0)
        return standing is not None and _tasks(standing) > FEW

    def tell(self, labs: Mapping[int, str]) -> list[News]:
        """Return one live event for each array that changed."""
        return [self._news(array, standing, labs) for array, standing in self._standings.items()]

    def _news(self, array: int, standing: Standing, labs: Mapping[int, str]) -> News:
        change = self._last[array]
        topics = [f"array:{self.cluster.name}:{array}"]
        if self.is_summarised(change):
            topics += change.wide_topics(self.cluster)
        payload = self._payload(array, standing, change, labs[change.lab_id])
        return News(name=ARRAY, topics=tuple(topics), payload={**payload}, at=clock.now())

    def _payload(self, array: int, standing: Standing, change: "JobChange", lab: str) -> ArrayNews:
        place, base = f"{self.cluster.name}/{array}", settings.BASE_URL
        worst = standing.worst
        outcome = describe_outcome(worst.state, worst.exit_code, worst.exit_signal) if worst else ""
        text = describe_counts(standing.counts)
        return ArrayNews(
            job_id=str(array), raw_id=array, cluster=self.cluster.name, state=standing.state, counts=standing.counts,
            tasks=_tasks(standing), over=standing.is_over, exit_status=standing.status, worst=outcome,
            text=f"array: {text}", user=change.record.user, lab=lab, campaign=change.campaign,
            page=f"{base}/jobs/{place}/", api=f"{base}/api/v1/jobs/standing?cluster={self.cluster.name}&ids={array}",
        )  # fmt: skip


def _tasks(standing: Standing) -> int:
    return sum(standing.counts.values())


def _count(cluster: Cluster, last: Mapping[int, "JobChange"]) -> dict[int, Standing]:
    if not last:
        return {}
    newest = max(change.record.submit_s for change in last.values())
    # Numbers begin anew after some years: an older array of the same is another one.
    since = datetime.fromtimestamp(newest, UTC) - timedelta(seconds=SAME_JOB_S)
    columns = ("array_job_id", "state", "exit_code", "exit_signal")
    # A stretch that a requeue closed is no task: the task's next record counts.
    same = Job.objects.filter(cluster=cluster, array_job_id__in=last, submit__gte=since)
    rows = same.exclude(state__in=CLOSED_STRETCH_STATES).values_list(*columns).annotate(tasks=Sum("array_tasks"))
    groups: dict[int, list[Record]] = defaultdict(list)
    for array, state, code, signal, tasks in rows:
        groups[array].append(Record(str(array), state, 0, None, code or 0, signal or 0, tasks))
    standings = {array: stand(groups[array], now_s=0) for array in last}
    return {array: standing for array, standing in standings.items() if standing is not None}

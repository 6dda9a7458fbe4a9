"""Jobs in the order of a time, from the ranges of an index: each range is read no further than a page needs.

A whole facility's jobs, or those that a person may see, lie in several ranges: one a cluster, a lab, a login name. To
sort them would be to read them all; here the heads of the ranges are merged.
"""

from collections.abc import Sequence
from heapq import merge
from itertools import groupby, islice
from typing import Final

from django.db.models import Q, QuerySet

from principals.actors import Actor as Principal
from principals.models import Agent, Cluster, ClusterUser, Lab
from telemetry.models import Job
from telemetry.selectors.job_filters import JobFilter

MOST_RANGES: Final = 200


class OrderedJobs:
    """Jobs by a column that is never null and their key, to be cut into pages: `jobs[first:behind]` is one."""

    def __init__(self, jobs: QuerySet[Job], ranges: Sequence[Q], *, column: str, falling: bool) -> None:
        sign = "-" if falling else ""
        self._jobs, self._column, self._falling = jobs, column, falling
        self._ranges = [jobs.filter(each).order_by(f"{sign}{column}", f"{sign}pk") for each in ranges]

    def __getitem__(self, span: slice) -> list[Job]:
        """Return a page; one query a range for its keys, and one for the rows."""
        heads = (each.values_list(self._column, "pk")[: span.stop] for each in self._ranges)
        keys = merge(*heads, reverse=self._falling)
        once = (key for key, _ in groupby(keys))  # one job may lie in a person's range and in their lab's
        found = [pk for _, pk in islice(once, span.start or 0, span.stop)]
        rows = {job.pk: job for job in self._jobs.filter(pk__in=found).order_by()}
        return [rows[pk] for pk in found if pk in rows]

    @property
    def whole(self) -> QuerySet[Job] | None:
        """All of them in one query, where they lie in one range; None where they do not."""
        return self._ranges[0] if len(self._ranges) == 1 else None


def newest_first(jobs: QuerySet[Job], actor: Principal, asked: JobFilter) -> "QuerySet[Job] | OrderedJobs":
    """Return jobs that `actor` sees by a filter, in the falling order of submit, to be cut into pages."""
    ranges = ranges_of(actor, asked)
    if ranges is None:
        return jobs.order_by("-submit", "-pk")
    return OrderedJobs(jobs, ranges, column="submit", falling=True)


def ranges_of(actor: Principal, asked: JobFilter) -> list[Q] | None:
    """Return the index ranges that hold all jobs of a filter that `actor` may see; None where they are too many."""
    if asked.agent:
        agents = Agent.objects.visible_to(actor).filter(name=asked.agent)
        ranges = [Q(agent=pk) for pk in agents.values_list("pk", flat=True)]
    elif asked.user:
        users = ClusterUser.objects.filter(login=asked.user)
        ranges = [Q(cluster_user=pk) for pk in users.values_list("pk", flat=True)]
    elif asked.lab:
        ranges = [Q(lab=pk) for pk in Lab.objects.filter(name=asked.lab).values_list("pk", flat=True)]
    elif actor.sees_facility:
        clusters = Cluster.objects.filter(name=asked.cluster) if asked.cluster else Cluster.objects.all()
        ranges = [Q(cluster=pk) for pk in clusters.values_list("pk", flat=True)]
    else:
        own = ClusterUser.objects.filter(user=actor.user) if actor.user else ClusterUser.objects.none()
        ranges = [Q(lab=pk) for pk in sorted(actor.visible_lab_ids)]
        ranges += [Q(cluster_user=pk) for pk in own.values_list("pk", flat=True)]
    return ranges if len(ranges) <= MOST_RANGES else None

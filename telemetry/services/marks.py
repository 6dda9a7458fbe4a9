"""Marks of what is out of date: put with each change, taken away by whoever has recomputed what they name.

One process a cluster, under a lease, reads marks, then what they name, and computes without a lock; in one transaction
it then writes, and takes away those marks that still are as it read them, so that a change it could not see leaves a
mark.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.db import connection
from django.db.models import QuerySet

from portal.core import leases, stopping
from principals.models import Cluster
from telemetry.models import ActivityDirty, RollupDirty, RollupGpuDirty
from telemetry.services import job_indexes

M = TypeVar("M", RollupDirty, RollupGpuDirty, ActivityDirty)
LEASE_S: Final = 30  # taken anew for each part; short, so that a refresher that was killed holds nobody up for long


@dataclass(frozen=True, slots=True)
class Marks(Generic[M]):
    """Marks of one kind. `columns` name what is out of date within a cluster, each with its type in PostgreSQL."""

    model: type[M]
    lease: str
    columns: Mapping[str, str]

    def put(self, cluster: Cluster, keys: Iterable[tuple[Any, ...]]) -> int:
        """Mark for recomputation, in the caller's transaction; return how many.

        A mark that stands already gets another stamp, and its row stays locked until the caller commits: a refresher
        that runs meanwhile cannot take the mark away without having seen the change. Sorted, against deadlocks.
        """
        marks = sorted(set(keys))
        if marks:
            _put(self.model._meta.db_table, self.columns, cluster.pk, marks)
        return len(marks)

    def of(self, cluster: Cluster) -> QuerySet[M]:
        """Return the marks of a cluster."""
        return self.model._default_manager.filter(cluster=cluster)

    def work_off(self, cluster: Cluster | None, work: Callable[[Cluster, str], int]) -> int:
        """Have `work` recompute what is marked in a cluster, or in each, as the lease's holder; return how much it did.

        A cluster whose lease somebody else holds is left to them. While the indexes of jobs are dropped for a large
        load, all is left to the end of it.
        """
        if job_indexes.is_loading():
            return 0
        marked = self.model._default_manager.values("cluster_id")
        waiting = Cluster.objects.filter(pk__in=marked).order_by("pk")
        done = 0
        for each in waiting.filter(pk=cluster.pk) if cluster else waiting:
            with self.held(each) as holder:
                done += work(each, holder) if holder else 0
        return done

    def held(self, cluster: Cluster) -> AbstractContextManager[str]:
        """Hold the lease of a cluster for a block: give it the holder, "" where somebody else has it."""
        return leases.held(self._lease_of(cluster), seconds=LEASE_S)

    def goes_on(self, cluster: Cluster, holder: str) -> bool:
        """Say whether to work on: the process is not to end, and the lease is ours."""
        return not stopping.asked() and leases.take(self._lease_of(cluster), holder, seconds=LEASE_S)

    def take(self, cluster: Cluster, holder: str, marks: Sequence[M]) -> list[M]:
        """Take away those marks that nobody touched since they were read, in the caller's transaction; return them.

        One that an ingest has changed, or holds, is left: it brings somebody back. That the lease is still ours, to the
        end of this transaction, keeps out a refresher that read earlier and comes to write later.
        """
        if not leases.take(self._lease_of(cluster), holder, seconds=LEASE_S):
            return []
        stamps = {mark.pk: mark.stamp for mark in marks}
        standing = self.of(cluster).filter(pk__in=stamps).select_for_update(skip_locked=True)
        taken = [mark for mark in standing if mark.stamp == stamps[mark.pk]]
        self.of(cluster).filter(pk__in=[mark.pk for mark in taken]).delete()
        return taken

    def _lease_of(self, cluster: Cluster) -> str:
        return f"{self.lease}:{cluster.name}"


def _put(table: str, columns: Mapping[str, str], cluster_id: int, marks: Sequence[tuple[Any, ...]]) -> None:
    names = ", ".join(columns)
    # A chunk of an ingest marks some thousand pairs: `bulk_create` would cost more than the jobs themselves.
    insert = f"INSERT INTO {table} (cluster_id, {names}, stamp) "
    again = f" ON CONFLICT (cluster_id, {names}) DO UPDATE SET stamp = {table}.stamp + 1"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # all at once: a statement a mark costs several times as much
            given = ", ".join(f"%s::{kind}[]" for kind in columns.values())
            select = f"SELECT %s, {names}, 0 FROM unnest({given}) AS marks ({names})"  # noqa: S608 - our names
            cursor.execute(f"{insert}{select}{again}", [cluster_id, *map(list, zip(*marks, strict=True))])
            return
        places = ", ".join(["%s"] * len(columns))
        cursor.executemany(f"{insert}VALUES (%s, {places}, 0){again}", [(cluster_id, *mark) for mark in marks])

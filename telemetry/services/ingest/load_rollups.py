"""Rollups of a facility's first load, worked out from what it writes: to read it all again costs as much as they do.

A thread computes while PostgreSQL, a process of its own, takes the next chunk; the days that the load is past are
written between two chunks. Of these, what is certain: a (day, login name) that was marked as often as we marked it,
where no mark was ever taken away, has no other jobs than ours. All else stays marked, for the usual way.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date, timedelta
from operator import itemgetter
from typing import Any, Final

import polars as pl

from principals.models import Cluster
from telemetry.engine.rollup_columns import JOB_SCHEMA, DayRollups
from telemetry.engine.usage import DAY_S
from telemetry.models import DataGeneration, RollupDirty
from telemetry.services import rollups
from telemetry.services.ingest.rows import KEY, VALUES, Row

Pair = tuple[date, int]

_LONGEST_S: Final = 10 * DAY_S  # what ran longer has more hours than memory should hold
_FOREVER: Final = 2**40
_PICK: Final = itemgetter(*map((*KEY, *VALUES).index, JOB_SCHEMA))
_AHEAD: Final = 3  # blocks that wait to be computed


class LoadRollups:
    """What the jobs of a load into an empty table add up to. `note` what is written, `go_on` once it is committed."""

    def __init__(self, cluster: Cluster, generation: int) -> None:
        """`generation`: that of the cluster's data before the table was seen to be empty."""
        self._cluster, self._generation = cluster, generation
        self._found = DayRollups(0, _FOREVER)
        self._noted: list[tuple[pl.DataFrame, Collection[Pair]]] = []
        self._marked = Counter[Pair]()  # how often by us
        self._left = set[Pair]()  # to the usual way
        self._passed = self._newest = date.min  # what comes of days before `_passed` is left
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="load-rollups")
        self._computing: list[Future[Any]] = []
        self._cut: tuple[date, date, Future[Any]] | None = None  # of days from, to before

    def note(self, jobs: pl.DataFrame, pairs: Collection[Pair]) -> None:
        """Note new jobs (`JOB_SCHEMA`) that are written, and the (day, login name) pairs that were marked for them."""
        self._noted.append((jobs, pairs))

    def note_rows(self, rows: Sequence[Row], pairs: Collection[Pair], *, certain: bool) -> None:
        """Note new jobs given as rows of the table; where that is not all that was written, leave their days alone."""
        if certain:
            jobs = pl.DataFrame([_PICK(row) for row in rows], schema=JOB_SCHEMA, orient="row")
            self.note(jobs, pairs)
        else:
            self._left.update(pairs)

    def go_on(self) -> None:
        """Take what was noted, which is committed now, and write the days that the load is past."""
        for jobs, pairs in self._noted:
            self._take(jobs, pairs)
        self._noted = []
        while len(self._computing) > _AHEAD:
            self._computing.pop(0).result()
        if self._cut is not None and self._cut[-1].done():
            self._write()
        # A day of grace: jobs that were requeued come late.
        if self._cut is None and self._newest > self._passed + timedelta(days=1):
            self._begin_cut(self._newest - timedelta(days=1))

    def begin_last(self) -> None:
        """Begin to compute the days that are left; `finish` writes them."""
        self._write()
        self._begin_cut(date.max)

    def finish(self) -> None:
        """Write all that is left."""
        self._write()

    def close(self) -> None:
        """Give up what was not written: it stays marked."""
        self._thread.shutdown(cancel_futures=True)

    def _take(self, jobs: pl.DataFrame, pairs: Collection[Pair]) -> None:
        is_long = (pl.col("usage_end") - pl.col("start") > _LONGEST_S).fill_null(value=False)
        if long := set(jobs.filter(is_long)["cluster_user_id"].to_list()):
            self._left |= {pair for pair in pairs if pair[1] in long}
        counts = ~is_long & (pl.max_horizontal("submit", "usage_end") >= _midnight(self._passed))
        self._marked.update(pair for pair in pairs if pair[0] >= self._passed)
        if not jobs.is_empty():
            self._newest = max(self._newest, _day_of(jobs["submit"].max()))
        self._computing.append(self._thread.submit(lambda: self._found.add(jobs.filter(counts))))

    def _begin_cut(self, behind: date) -> None:
        self._cut = self._passed, behind, self._thread.submit(self._found.cut, _midnight(behind))
        self._passed = behind

    def _write(self) -> None:
        """Write what was cut off, if anything was: of that, what is certain."""
        if self._cut is None:
            return
        (since, behind, cut), self._cut = self._cut, None
        days, users = cut.result()
        for each in self._computing:
            if each.done():  # as all before the cut are: one that failed has no part in it
                each.result()
        marked = RollupDirty.objects.filter(cluster=self._cluster, day__gte=since, day__lt=behind)
        marks = [mark for mark in marked if self._is_ours(mark)]
        # Asked behind the marks: whoever takes one away from now on takes one that we have seen, and have not any more.
        if marks and DataGeneration.objects.of(self._cluster) == self._generation:
            self._generation += rollups.write_computed(self._cluster, marks, days, users)

    def _is_ours(self, mark: RollupDirty) -> bool:
        pair = mark.day, mark.cluster_user_id
        return self._marked[pair] == mark.stamp + 1 and pair not in self._left


def _midnight(day: date) -> int:
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY_S


def _day_of(second: Any) -> date:
    return date(1970, 1, 1) + timedelta(seconds=second)

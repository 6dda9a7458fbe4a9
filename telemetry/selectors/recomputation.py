"""The jobs that count in some UTC days, in columns: what the rollups of these days are computed from."""

from collections.abc import Collection, Iterator
from datetime import date
from typing import Final

import polars as pl
from django.db import connection
from django.db.models import Q

from telemetry.engine.rollup_columns import JOB_SCHEMA
from telemetry.engine.usage import DAY_S
from telemetry.models import Job
from telemetry.models.jobs import LONG_S
from telemetry.selectors.job_frames import job_frames

_ROWS_A_FETCH: Final = {"sqlite": 20_000, "postgresql": 100_000}


def read_jobs(cluster_id: int, users: Collection[int], lo: int, hi: int) -> Iterator[pl.DataFrame]:
    """Yield the jobs of some login names (`JOB_SCHEMA`) that were submitted, ran or ended within [lo, hi): one query.

    What ended long after was long itself: without that condition every job since would have to be looked at. Each of
    the three parts is whole in itself, so that each finds its index.
    """
    jobs = Job.objects.filter(cluster_id=cluster_id, cluster_user_id__in=users).values_list(*JOB_SCHEMA)
    submitted = Q(submit__gte=lo, submit__lt=hi)
    others = jobs.filter(Q(submit__lt=lo) | Q(submit__gte=hi), Q(start__lt=hi) | Q(start=None))
    soon = others.filter(usage_end__gte=lo, usage_end__lt=hi + LONG_S)
    long_after = others.filter(is_long=True, usage_end__gte=hi + LONG_S)
    found = jobs.filter(submitted).union(soon, long_after, all=True)
    return job_frames(found, JOB_SCHEMA, rows=_ROWS_A_FETCH[connection.vendor])


def count_submitted(cluster_id: int, lo: int, hi: int, *, most: int) -> int:
    """Count the jobs of a cluster that were submitted within [lo, hi), to `most`: by the index, whatever there is."""
    return Job.objects.filter(cluster_id=cluster_id, submit__gte=lo, submit__lt=hi)[:most].count()


def epoch_of(day: date) -> int:
    """Return the epoch second at which a UTC day begins."""
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY_S

"""The jobs that count in some UTC days, in columns: what the rollups of these days are computed from."""

import io
from datetime import date
from typing import Any, Final

import polars as pl
from django.db import connection
from django.db.models import Q

from telemetry.engine.rollup_columns import JOB_SCHEMA
from telemetry.engine.usage import DAY_S
from telemetry.models import Job
from telemetry.models.jobs import LONG_S

_ROWS_A_FETCH: Final = 5000


def read_jobs(cluster_id: int, lo: int, hi: int) -> pl.DataFrame:
    """Return the jobs of a cluster (`JOB_SCHEMA`) that were submitted, ran or ended within [lo, hi): one query.

    What ended long after was long itself: without that condition every job since would have to be looked at. Each of
    the three parts is whole in itself, so that each finds its index.
    """
    jobs = Job.objects.filter(cluster_id=cluster_id).values_list(*JOB_SCHEMA)
    submitted = Q(submit__gte=lo, submit__lt=hi)
    others = jobs.filter(Q(submit__lt=lo) | Q(submit__gte=hi), Q(start__lt=hi) | Q(start=None))
    soon = others.filter(usage_end__gte=lo, usage_end__lt=hi + LONG_S)
    long_after = others.filter(is_long=True, usage_end__gte=hi + LONG_S)
    return _read(*jobs.filter(submitted).union(soon, long_after, all=True).query.sql_with_params())


def _read(sql: str, params: tuple[Any, ...]) -> pl.DataFrame:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            query = cursor.mogrify(sql, params)
            with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv)") as copy:
                text = b"".join(copy)
            if not text:
                return pl.DataFrame(schema=JOB_SCHEMA)
            jobs = pl.read_csv(io.BytesIO(text), has_header=False, schema=JOB_SCHEMA)
            return jobs.with_columns(pl.col(pl.String).fill_null(""))
        cursor.execute(sql, params)
        parts = [pl.DataFrame(schema=JOB_SCHEMA)]
        while rows := cursor.fetchmany(_ROWS_A_FETCH):
            parts.append(pl.DataFrame(dict(zip(JOB_SCHEMA, zip(*rows, strict=True), strict=True)), schema=JOB_SCHEMA))
    return pl.concat(parts)


def epoch_of(day: date) -> int:
    """Return the epoch second at which a UTC day begins."""
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY_S

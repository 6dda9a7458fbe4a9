"""Jobs come in columns, block by block, and leave the connection as it was, however reading ends."""

from collections.abc import Iterator
from contextlib import closing

import polars as pl
import pytest
from django.db import connection, models
from django.db.models import F
from django.db.models.functions import Cast

from telemetry.models import Job
from telemetry.selectors.job_frames import job_frames
from tests import factories
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
SCHEMA: dict[str, pl.DataType] = {"raw_id": pl.Int64(), "partition": pl.String(), "end": pl.Int64()}


@pytest.fixture
def jobs(db: None) -> list[Job]:
    user, lab = (
        factories.make_cluster_user(factories.make_cluster("aster"), factories.make_user()),
        factories.make_lab(),
    )
    names = ("shared", 'a "quoted", one', "line\nbreak", "", "ünï | 🎓", "shared", "test")
    return [make_job(user, lab, submit=DAY_0 + n, partition=name) for n, name in enumerate(names)]


def frames(rows: int) -> Iterator[pl.DataFrame]:
    return job_frames(Job.objects.order_by("submit").values_list(*SCHEMA), SCHEMA, rows=rows)


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_all_rows_come_in_blocks(jobs: list[Job], rows: int) -> None:
    found = list(frames(rows))
    assert max(map(len, found)) <= rows
    assert pl.concat(found).rows() == [(job.raw_id, job.partition, None) for job in jobs]


def test_who_stops_reading_can_ask_again(jobs: list[Job]) -> None:
    for _ in range(2):
        reading = frames(2)
        with closing(reading):
            assert next(reading)["raw_id"].to_list() == [job.raw_id for job in jobs[:2]]
    assert Job.objects.count() == len(jobs)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite divides by zero")
def test_an_error_of_the_server_is_raised(jobs: list[Job], transactional_db: None) -> None:
    divided = Cast(F("raw_id") / (F("raw_id") - jobs[-1].raw_id), models.BigIntegerField())
    query = Job.objects.order_by("submit").annotate(odd=divided).values_list("odd", "partition", "end")
    with pytest.raises(Exception, match="division by zero"):
        list(job_frames(query, SCHEMA, rows=2))
    assert Job.objects.count() == len(jobs)

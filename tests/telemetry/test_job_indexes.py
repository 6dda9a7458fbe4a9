"""A large load into an empty PostgreSQL goes without the indexes of jobs; however it ends, they are there again."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from portal.core import clock
from principals.models import Cluster
from telemetry import services
from telemetry.models import IngestBatch, Job, RollupDay
from telemetry.services import job_indexes
from telemetry.services.ingest import running
from telemetry.tasks import build_job_indexes
from tests import factories
from tests.telemetry.logs import counts, facts, ingest, many

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
DROPPED = {index.name for index in Job._meta.indexes} - job_indexes._OF_FEW
on_postgresql = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite keeps its indexes")


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_indexes, "FROM_BYTES", 1)
    monkeypatch.setattr(running, "MANY_BYTES", 0)


def missing() -> set[str]:
    return {index.name for index in job_indexes._indexes(missing=True)}


def drop() -> None:
    assert job_indexes.drop_for_load(100)
    assert missing() == DROPPED


def load(cluster: Cluster, **more: Any) -> IngestBatch:
    state = IngestBatch.State.RUNNING
    return IngestBatch.objects.create(cluster=cluster, format="sacct", state=state, bytes_total=100, **more)


@on_postgresql
def test_indexes_are_missing_during_the_load_and_there_after_it(cluster: Cluster) -> None:
    during = []
    batch = ingest(cluster, many(300), progress=lambda _: during.append((len(missing()), services.refresh())))
    assert counts(batch) == {"created": 300}
    assert during[0] == (len(DROPPED), 0)  # rollups wait for the indexes
    assert not missing()
    assert RollupDay.objects.exists()


def test_the_rows_are_those_of_a_load_with_indexes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(cluster, many(300))
    rows = facts(cluster)
    Job.objects.all().delete()
    monkeypatch.setattr(job_indexes, "FROM_BYTES", 10**9)
    ingest(cluster, many(300))
    assert facts(cluster) == rows


@on_postgresql
def test_a_table_with_jobs_keeps_its_indexes(cluster: Cluster) -> None:
    ingest(cluster, many(3))
    during = []
    ingest(cluster, many(40, seed=2), progress=lambda _: during.append(len(missing())))
    assert set(during) == {0}


@on_postgresql
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_load_leaves_its_indexes(cluster: Cluster, error: type[BaseException]) -> None:
    def interrupt(_: object) -> None:
        raise error

    with pytest.raises(error):
        ingest(cluster, many(300), progress=interrupt)
    assert Job.objects.exists()
    assert not missing()


@on_postgresql
def test_the_sweep_builds_what_a_killed_load_left_out(cluster: Cluster) -> None:
    drop()
    load(cluster, leased_until=clock.now() - timedelta(seconds=1))
    assert settings.CELERY_BEAT_SCHEDULE["build-job-indexes"]["task"] == build_job_indexes.name
    assert build_job_indexes() == len(DROPPED)
    assert not missing()


@on_postgresql
def test_the_sweep_leaves_a_load_that_goes_on_alone(cluster: Cluster) -> None:
    drop()
    load(cluster, leased_until=clock.now() + timedelta(seconds=30))
    assert build_job_indexes() == 0


@on_postgresql
def test_a_run_after_a_killed_one_builds_them_where_no_worker_runs(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop()
    killed = load(cluster, leased_until=clock.now() + timedelta(seconds=30))

    def lapse(_: float) -> None:
        IngestBatch.objects.filter(pk=killed.pk).update(leased_until=clock.now() - timedelta(seconds=1))

    monkeypatch.setattr("telemetry.services.rollups.time.sleep", lapse)
    assert counts(ingest(cluster, many(300))) == {"created": 300}
    assert not missing()
    assert RollupDay.objects.exists()


@on_postgresql
def test_one_builds_at_a_time_and_who_is_killed_holds_nobody_up() -> None:
    drop()
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [job_indexes._BUILDING])
        assert build_job_indexes() == 0
        with connection.cursor() as cursor:  # as the server does with a connection whose process is gone
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [other.connection.info.backend_pid])
        assert build_job_indexes() == len(DROPPED)
    finally:
        other.close()


def test_with_all_indexes_there_is_nothing_to_build() -> None:
    assert build_job_indexes() == 0
    assert not missing()
    assert connection.vendor in ("sqlite", "postgresql")

"""Rollups of GPU use say what jobs and readings say, whatever the order in which these came and were refreshed."""

import math
from collections import Counter
from datetime import UTC, date, datetime
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.core import leases
from portal.core.models import Lease
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, ClusterUser, Lab
from telemetry import services
from telemetry.models import DataGeneration, Job, JobGpu, RollupGpu, RollupGpuDirty
from telemetry.services import gpu_rollups, job_indexes
from telemetry.tasks import refresh_gpu_rollups, refresh_rollups
from tests import factories
from tests.telemetry.gpu_rows import DAY_0, ENDED, gpu_job, reading
from tests.telemetry.job_rows import mark

pytestmark = [pytest.mark.django_db, pytest.mark.sql]

DAY = 86_400
SUMS = ("jobs", "held_s", "measured_s", "stranded_s", "peaks")
KEY = ("day", "lab_id", "partition", "actor", "harness", "quadrant")


def refresh_all(cluster: Cluster | None = None) -> None:
    services.refresh(cluster=cluster)
    gpu_rollups.refresh(cluster)


def expected() -> dict[tuple[Any, ...], Counter[str]]:
    """Add up, job by job, what every rollup should hold."""
    found: dict[tuple[Any, ...], Counter[str]] = {}
    for job in Job.objects.filter(gpus__gt=0).select_related("gpu_use"):
        if job.start is None or job.end is None:
            continue
        use = getattr(job, "gpu_use", None)
        key = (
            job.end.date(), job.lab_id, job.partition, job.actor, job.harness, use.quadrant if use else "",
        )  # fmt: skip
        measured = min(use.gpus, job.gpus) * job.elapsed_s if use else 0
        sums = {
            "jobs": 1, "held_s": job.gpus * job.elapsed_s, "measured_s": measured,
            "stranded_s": math.floor(measured * (100.0 - use.used_percent) / 100.0 + 0.5) if use else 0,
            "peaks": int(use.memory_is_peak) if use else 0,
        }  # fmt: skip
        found.setdefault(key, Counter()).update(sums)
    return {key: +sums for key, sums in found.items()}


def stored() -> dict[tuple[Any, ...], Counter[str]]:
    rows = RollupGpu.objects.values(*KEY, *SUMS)
    return {tuple(row[name] for name in KEY): +Counter({name: row[name] for name in SUMS}) for row in rows}


def assert_exact() -> None:
    assert not RollupGpuDirty.objects.exists()
    assert stored() == expected()


def record(cluster: Cluster, *readings: Any) -> None:
    services.record_gpu_utilisation(actor=SYSTEM_ACTOR, cluster=cluster, readings=readings)


def test_no_more_is_measured_than_a_job_had(users: list[ClusterUser], labs: list[Lab]) -> None:
    gpu_job(users[0], labs[0], 7, gpus=2)
    names = ("g1:0", "g1:1", "GPU-8a1b", "GPU-9c2d")  # of a node's exporter, and of the device itself
    record(users[0].cluster, *(reading(7, 20, 10, gpu=name) for name in names))
    services.refresh()
    gpu_rollups.refresh()
    row = RollupGpu.objects.get()
    assert (row.held_s, row.measured_s, row.stranded_s) == (14_400, 14_400, 11_520)
    assert_exact()


def july(number: int) -> date:
    return datetime.fromtimestamp(DAY_0 + number * DAY, UTC).date()


@pytest.fixture
def users(db: None) -> list[ClusterUser]:
    cluster = factories.make_cluster("aster")
    return [factories.make_cluster_user(cluster, factories.make_user()) for _ in range(2)]


@pytest.fixture
def cluster(users: list[ClusterUser]) -> Cluster:
    return users[0].cluster


@pytest.fixture
def labs(db: None) -> list[Lab]:
    return [factories.make_lab("bio"), factories.make_lab("chem")]


SHAPES = st.fixed_dictionaries(
    {
        "user": st.integers(0, 1), "lab": st.integers(0, 1), "gpus": st.sampled_from([0, 1, 1, 2]),
        "start": st.integers(0, 2 * DAY) | st.sampled_from([DAY - 1, DAY]),
        "span": st.sampled_from([0, 1, 3599, DAY - 1, DAY]) | st.integers(1, DAY),
        "actor": st.sampled_from(["agent", "human", "unknown"]), "partition": st.sampled_from(["gpu", "test"]),
        "runs": st.booleans(), "harness": st.sampled_from(["", "codex"]),
    }
)  # fmt: skip
PERCENT = st.floats(0, 100, allow_nan=False) | st.sampled_from([0.0, 50.0, 100.0])
READINGS = st.tuples(PERCENT, PERCENT, st.sampled_from(["g1:0", "g1:1"]), st.booleans())
STEPS = st.one_of(
    st.tuples(st.just("job"), st.integers(1, 4), SHAPES), st.tuples(st.just("reading"), st.integers(1, 4), READINGS),
    st.tuples(st.just("refresh"), st.just(0), st.none()),
)  # fmt: skip


def put(raw_id: int, shape: dict[str, Any], users: list[ClusterUser], labs: list[Lab]) -> None:
    """Make a job, or change all of the one there is, with marks under the old and the new values."""
    start = DAY_0 + shape["start"]
    until = start + shape["span"]
    job = Job.objects.filter(raw_id=raw_id).first()
    if job is None:
        job = gpu_job(users[0], labs[0], raw_id, start=DAY_0, end=DAY_0 + 60)
    mark(job)
    job.cluster_user, job.lab = users[shape["user"]], labs[shape["lab"]]
    job.start, job.usage_end, job.end = start, until, None if shape["runs"] else until
    job.elapsed_s = shape["span"]
    for name in ("gpus", "actor", "partition", "harness"):
        setattr(job, name, shape[name])
    job.save()
    mark(job)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=1, max_size=12))
def test_any_order_gives_what_jobs_and_readings_say(
    users: list[ClusterUser], labs: list[Lab], steps: list[tuple[str, int, Any]]
) -> None:
    for model in (JobGpu, Job, RollupGpu, RollupGpuDirty):
        model.objects.all().delete()
    cluster, at = users[0].cluster, ENDED
    for kind, raw_id, what in steps:
        if kind == "job":
            put(raw_id, what, users, labs)
        elif kind == "reading":
            at += 1
            compute, memory, gpu, is_peak = what
            record(cluster, reading(raw_id, compute, memory, gpu=gpu, at=at, memory_is_peak=is_peak))
        else:
            services.match_gpu_utilisation()
            refresh_all()
    services.match_gpu_utilisation()
    assert services.catch_up(cluster=cluster)
    assert_exact()


def test_a_reading_alone_brings_its_day_up_to_date(cluster: Cluster, users, labs) -> None:
    gpu_job(users[0], labs[0], 1)
    refresh_all()
    assert [(row.quadrant, row.jobs) for row in RollupGpu.objects.all()] == [("", 1)]
    record(cluster, reading(1, 20, 10))
    assert list(RollupGpuDirty.objects.values_list("day", flat=True)) == [july(0)]
    assert refresh_rollups() == 0  # pairs of days and users: none of these changed
    assert refresh_gpu_rollups() == 1
    found = RollupGpu.objects.get()
    assert (found.quadrant, found.jobs, found.held_s, found.stranded_s) == ("low", 1, 7200, 5760)
    assert_exact()


def test_a_reading_that_waited_marks_the_day_of_its_job(cluster: Cluster, users, labs) -> None:
    record(cluster, reading(1))
    assert not RollupGpuDirty.objects.exists()
    gpu_job(users[0], labs[0], 1)
    refresh_all()
    services.match_gpu_utilisation()
    refresh_all()
    assert RollupGpu.objects.get().quadrant == "low"
    assert_exact()


def test_the_same_reading_again_marks_nothing(cluster: Cluster, users, labs) -> None:
    gpu_job(users[0], labs[0], 1)
    record(cluster, reading(1))
    refresh_all()
    record(cluster, reading(1))
    assert not RollupGpuDirty.objects.exists()


def test_a_job_that_ends_on_another_day_leaves_the_first(cluster: Cluster, users, labs) -> None:
    job = gpu_job(users[0], labs[0], 1)
    record(cluster, reading(1))
    refresh_all()
    mark(job)
    Job.objects.update(end=DAY_0 + DAY + 60, usage_end=DAY_0 + DAY + 60, elapsed_s=DAY)
    mark(job)
    refresh_all()
    assert list(RollupGpu.objects.values_list("day", "held_s")) == [(july(1), DAY)]
    assert_exact()


def test_what_changes_while_a_day_is_computed_stays_marked(cluster: Cluster, users, labs, monkeypatch) -> None:
    gpu_job(users[0], labs[0], 1)
    refresh_all()
    record(cluster, reading(1, 20, 10))
    compute = gpu_rollups._compute

    def late(*args: Any) -> Any:
        rows = compute(*args)
        record(cluster, reading(1, 90, 90, at=ENDED + 1))
        return rows

    monkeypatch.setattr(gpu_rollups, "_compute", late)
    assert gpu_rollups.refresh() == 0
    assert RollupGpuDirty.objects.exists() and RollupGpu.objects.get().quadrant == ""
    monkeypatch.setattr(gpu_rollups, "_compute", compute)
    assert gpu_rollups.refresh() == 1
    assert RollupGpu.objects.get().quadrant == "both"
    assert_exact()


def test_whoever_lost_the_lease_writes_nothing(cluster: Cluster, users, labs, monkeypatch) -> None:
    gpu_job(users[0], labs[0], 1)
    record(cluster, reading(1))
    compute = gpu_rollups._compute

    def slow(*args: Any) -> Any:
        Lease.objects.filter(name=f"gpu-rollups:{cluster.name}").update(holder="somebody else")
        return compute(*args)

    monkeypatch.setattr(gpu_rollups, "_compute", slow)
    assert gpu_rollups.refresh() == 0
    assert RollupGpuDirty.objects.exists() and not RollupGpu.objects.exists()


def test_a_cluster_that_somebody_else_refreshes_is_left_to_them(cluster: Cluster, users, labs) -> None:
    gpu_job(users[0], labs[0], 1)
    record(cluster, reading(1))
    with leases.held(f"gpu-rollups:{cluster.name}", seconds=30):
        assert gpu_rollups.refresh() == 0
    assert gpu_rollups.refresh() == 1


def test_other_clusters_keep_their_marks(cluster: Cluster, users, labs) -> None:
    other = factories.make_cluster("borage")
    gpu_rollups.mark_days(other, [july(0)])
    gpu_job(users[0], labs[0], 1)
    refresh_all(cluster)
    assert list(RollupGpuDirty.objects.values_list("cluster__name", flat=True)) == ["borage"]


def test_a_day_costs_as_many_queries_whatever_its_jobs(cluster: Cluster, users, labs) -> None:
    counts = []
    for number in (3, 30):
        for raw_id in range(number * 100, number * 101):
            gpu_job(users[raw_id % 2], labs[raw_id % 2], raw_id)
        refresh_all()
        gpu_rollups.mark_days(cluster, [july(0)])
        with CaptureQueriesContext(connection) as asked:
            gpu_rollups.refresh()
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_what_was_there_before_them_is_computed_by_the_first_refresh(cluster: Cluster, users, labs) -> None:
    gpu_job(users[0], labs[0], 1)
    gpu_job(users[1], labs[1], 2, start=DAY_0 + 3 * DAY)
    record(cluster, reading(1))
    refresh_all()
    RollupGpu.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(import_module("telemetry.migrations.0016_gpu_rollups")._MARK_ALL)
    refresh_all()
    assert RollupGpu.objects.count() == 2
    assert_exact()


def test_catching_up_waits_for_readings_too(cluster: Cluster, users, labs) -> None:
    gpu_job(users[0], labs[0], 1)
    services.catch_up(cluster=cluster)
    record(cluster, reading(1))
    with leases.held(f"gpu-rollups:{cluster.name}", seconds=30):
        assert not services.catch_up(cluster=cluster, patience_s=0)
    assert services.catch_up(cluster=cluster)
    assert_exact()


def test_every_few_jobs_that_come_leave_the_day_to_the_minute(cluster: Cluster, users, labs) -> None:
    gpu_job(users[0], labs[0], 1)
    assert services.catch_up(cluster=cluster, gpus=False)
    assert RollupGpuDirty.objects.exists() and not RollupGpu.objects.exists()
    assert django_settings.CELERY_BEAT_SCHEDULE["refresh-gpu-rollups"]["task"] == refresh_gpu_rollups.name
    assert refresh_gpu_rollups() == 1
    assert_exact()


def test_reports_learn_of_it(cluster: Cluster, users, labs) -> None:
    gpu_job(users[0], labs[0], 1)
    record(cluster, reading(1))
    before = DataGeneration.objects.of(cluster)
    gpu_rollups.refresh()
    assert DataGeneration.objects.of(cluster) == before + 1


def test_days_are_left_to_the_end_of_a_load_that_dropped_the_indexes(
    cluster: Cluster, users, labs, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu_job(users[0], labs[0], 1)
    gpu_rollups.mark_days(cluster, [july(0)])
    with monkeypatch.context() as patched:
        patched.setattr(job_indexes, "is_loading", lambda: True)
        assert gpu_rollups.refresh() == 0
    assert RollupGpuDirty.objects.exists() and gpu_rollups.refresh() == 1

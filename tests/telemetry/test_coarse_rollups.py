"""What looks at a whole facility reads coarse rollups: they are the fine ones added up, whatever happened meanwhile."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from django.db.models import Max, Sum

from telemetry import services
from telemetry.engine.packed import unpack
from telemetry.models import Job, RollupDay, RollupHistogram, RollupHour, RollupUser
from telemetry.services.rollups import refresh
from tests.telemetry.facility import HOUR, Facility, make_facility
from tests.telemetry.job_rows import DAY_0, make_job, mark

pytestmark = pytest.mark.django_db
HOURLY = ("submissions", "core_s", "node_s", "gpu_s")
KEY = ("cluster_id", "day", "cluster_user_id", "lab_id", "actor", "harness")
SUMS = tuple(field.name for field in RollupDay._meta.fields if field.name not in {
    "id", "cluster", "day", "cluster_user", "lab", "partition", "qos", "actor", "harness", "max_cores",
    "hours"})  # fmt: skip


@pytest.fixture
def facility(db: None) -> Facility:
    return make_facility()


def are_sums() -> bool:
    sums = {f"of_{name}": Sum(name) for name in SUMS}
    fine = RollupDay.objects.order_by().values_list(*KEY).annotate(**sums, most=Max("max_cores"))
    runtimes: Counter[tuple[Any, ...]] = Counter()
    for *key, text in RollupUser.objects.values_list("cluster_id", "day", "actor", "runtimes"):
        runtimes.update({(*key, bucket): jobs for bucket, jobs in unpack(text)})
    assert sorted(RollupUser.objects.values_list(*KEY, *SUMS, "max_cores")) == sorted(fine)
    coarse = RollupHistogram.objects.values_list("cluster_id", "day", "actor", "bucket", "jobs")
    assert {tuple(key): jobs for *key, jobs in coarse} == runtimes
    whole = RollupHour.objects.aggregate(*map(Sum, HOURLY))
    assert whole == RollupDay.objects.aggregate(*map(Sum, HOURLY))
    return RollupUser.objects.exists()


def test_they_are_the_sums_and_stay_it_through_changes(facility: Facility) -> None:
    assert are_sums()
    rng = Random(1)
    for _ in range(3):
        for job in rng.sample(list(Job.objects.all()), 4):
            mark(job)  # under its old values
            job.partition, job.actor = rng.choice(("test", "shared")), rng.choice(("agent", "human"))
            job.save()
            mark(job)
        user, start = rng.choice(facility.users), DAY_0 + rng.randrange(3 * 86_400)
        make_job(user, facility.big, submit=start, start=start, end=start + 40 * HOUR, partition="long", cpus=3)
        assert services.catch_up(cluster=facility.cluster)
        assert are_sums()


def test_parts_of_a_day_that_are_written_later_leave_them_whole(
    facility: Facility, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telemetry.services.rollups.MARKS_A_PART", dict.fromkeys(("sqlite", "postgresql"), 2))
    for user in facility.users:
        make_job(user, facility.big, submit=DAY_0, start=DAY_0, end=DAY_0 + HOUR)
    while refresh(cluster=facility.cluster, limit=1):
        pass
    assert are_sums()


def test_hours_of_a_day_that_not_all_rollups_know_yet_stay_as_they_are(facility: Facility) -> None:
    before = sorted(RollupHour.objects.values_list("hour", "partition", "actor", *HOURLY))
    RollupDay.objects.update(hours=None)
    first, second = facility.users[:2]
    for job in Job.objects.filter(cluster_user=first):
        mark(job)
    assert services.catch_up(cluster=facility.cluster)
    assert sorted(RollupHour.objects.values_list("hour", "partition", "actor", *HOURLY)) == before
    for job in Job.objects.all():
        mark(job)
    make_job(second, facility.big, submit=DAY_0, start=DAY_0, end=DAY_0 + HOUR)
    assert services.catch_up(cluster=facility.cluster)
    assert are_sums()


def test_a_day_without_jobs_has_none(facility: Facility) -> None:
    for job in Job.objects.all():
        mark(job)
    Job.objects.all().delete()
    assert services.catch_up(cluster=facility.cluster)
    assert not RollupUser.objects.exists() and not RollupHistogram.objects.exists()

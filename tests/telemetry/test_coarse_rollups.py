"""What looks at a whole facility reads coarse rollups: they are the fine ones added up, whatever happened meanwhile."""

from importlib import import_module
from random import Random

import pytest
from django.db import connection
from django.db.models import Max, Sum

from telemetry import services
from telemetry.models import Job, RollupDay, RollupHistogram, RollupRuntime, RollupUser
from telemetry.services.rollups import refresh
from tests.telemetry.facility import HOUR, Facility, make_facility
from tests.telemetry.job_rows import DAY_0, make_job, mark

pytestmark = pytest.mark.django_db
KEY = ("cluster_id", "day", "cluster_user_id", "lab_id", "actor", "harness")
SUMS = tuple(field.name for field in RollupDay._meta.fields if field.name not in {
    "id", "cluster", "day", "cluster_user", "lab", "partition", "qos", "actor", "harness", "max_cores"})  # fmt: skip


@pytest.fixture
def facility(db: None) -> Facility:
    return make_facility()


def are_sums() -> bool:
    sums = {f"of_{name}": Sum(name) for name in SUMS}
    fine = RollupDay.objects.order_by().values_list(*KEY).annotate(**sums, most=Max("max_cores"))
    runtimes = RollupRuntime.objects.order_by().values_list(
        "rollup__cluster_id", "rollup__day", "rollup__actor", "bucket"
    )
    assert sorted(RollupUser.objects.values_list(*KEY, *SUMS, "max_cores")) == sorted(fine)
    coarse = RollupHistogram.objects.values_list("cluster_id", "day", "actor", "bucket", "jobs")
    assert sorted(coarse) == sorted(runtimes.annotate(number=Sum("jobs")))
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


def test_what_was_there_before_them_is_added_up_once(facility: Facility) -> None:
    RollupUser.objects.all().delete()
    RollupHistogram.objects.all().delete()
    migration = import_module("telemetry.migrations.0013_coarse_rollups")
    with connection.cursor() as cursor:
        cursor.execute(migration._USERS)
        cursor.execute(migration._HISTOGRAMS)
    assert are_sums()


def test_a_day_without_jobs_has_none(facility: Facility) -> None:
    for job in Job.objects.all():
        mark(job)
    Job.objects.all().delete()
    assert services.catch_up(cluster=facility.cluster)
    assert not RollupUser.objects.exists() and not RollupHistogram.objects.exists()

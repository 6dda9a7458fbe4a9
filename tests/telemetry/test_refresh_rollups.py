"""Rollups say what the jobs say, whatever the order in which jobs came and rollups were refreshed."""

from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.core import leases
from portal.core.models import Lease
from principals.models import ClusterUser, Lab
from telemetry import services
from telemetry.engine.packed import unpack
from telemetry.models import Job, RollupDay, RollupDirty, RollupHour, RollupUser
from telemetry.selectors.recomputation import epoch_of
from telemetry.services import rollups
from telemetry.tasks import refresh_rollups
from tests import factories
from tests.telemetry.job_rows import (
    DAY_0,
    expected_days,
    expected_hours,
    expected_runtimes,
    make_job,
    mark,
)

pytestmark = pytest.mark.django_db

SUMS = [
    "wall_s", "core_s", "node_s", "gpu_s", "submissions", "ended", "ended_never_started", "ended_cancelled",
    "ended_failed", "ended_timeout", "ended_wall_s", "ended_node_s", "ended_wait_node_s", "ended_core_s",
    "ended_lost_core_s", "wait_s", "waits",
]  # fmt: skip


def stored_days() -> dict[tuple[Any, ...], Counter[str]]:
    found = {}
    for row in RollupDay.objects.all():
        key = (row.cluster_user_id, row.lab_id, row.partition, row.qos, row.actor, row.harness)
        sums = Counter({name: getattr(row, name) for name in SUMS})
        found[epoch_of(row.day) // 86_400, *key] = +sums
    return {key: sums for key, sums in found.items() if sums}


def stored_runtimes() -> Counter[tuple[Any, ...]]:
    found = Counter()
    for row in RollupUser.objects.all():
        key = (epoch_of(row.day) // 86_400, row.cluster_user_id, row.lab_id, row.actor, row.harness)
        found.update({(*key, bucket): jobs for bucket, jobs in unpack(row.runtimes)})
    return found


def stored_hours() -> dict[tuple[Any, ...], Counter[str]]:
    found = {}
    for row in RollupHour.objects.all():
        sums = {name: getattr(row, name) for name in ("submissions", "core_s", "node_s", "gpu_s")}
        found[int(row.hour.timestamp()), row.partition, row.actor, row.harness] = +Counter(sums)
    return {key: sums for key, sums in found.items() if sums}


def assert_exact() -> None:
    jobs = list(Job.objects.all())
    assert not RollupDirty.objects.exists()
    assert stored_days() == expected_days(jobs)
    assert stored_runtimes() == expected_runtimes(jobs)
    assert stored_hours() == expected_hours(jobs)


@pytest.fixture
def users(db: None) -> list[ClusterUser]:
    cluster = factories.make_cluster("aster")
    return [factories.make_cluster_user(cluster, factories.make_user()) for _ in range(2)]


@pytest.fixture
def lab(db: None) -> Lab:
    return factories.make_lab()


INSTANTS = st.integers(0, 4 * 86_400) | st.sampled_from([0, 3600, 86_399, 86_400, 86_401, 172_800])
SHAPES = st.fixed_dictionaries(
    {
        "submit": INSTANTS, "wait": st.integers(-5, 90_000),
        "span": st.integers(0, 200_000) | st.sampled_from([3600, 172_800, 172_801, 700_000]),
        "suspended": st.integers(0, 100_000) | st.just(0),
        "kind": st.sampled_from(["ended", "running", "never", "pending"]),
        "cpus": st.integers(0, 64), "nodes": st.integers(1, 3), "gpus": st.integers(0, 2),
        "actor": st.sampled_from(["agent", "human", "unknown"]), "partition": st.sampled_from(["shared", "test"]),
        "state": st.sampled_from(["COMPLETED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"]), "user": st.integers(0, 1),
        "tasks": st.integers(1, 3),
    }
)  # fmt: skip


def put(shape: dict[str, Any], users: list[ClusterUser], lab: Lab) -> Job:
    submit = DAY_0 + shape["submit"]
    start = submit + shape["wait"]
    until = start + shape["span"]
    held = {name: shape[name] for name in ("cpus", "nodes", "gpus", "actor", "partition")}
    user = users[shape["user"]]
    if shape["kind"] == "pending":
        return make_job(user, lab, submit=submit, array_tasks=shape["tasks"], **held)
    if shape["kind"] == "never":
        end = max(submit, until)
        return make_job(user, lab, submit=submit, end=end, state="CANCELLED", array_tasks=shape["tasks"], **held)
    elapsed = max(0, shape["span"] - shape["suspended"])
    if shape["kind"] == "running":
        return make_job(
            user, lab, submit=submit, start=start, usage_end=until, elapsed_s=elapsed, state="RUNNING", **held
        )
    return make_job(user, lab, submit=submit, start=start, end=until, elapsed_s=elapsed, state=shape["state"], **held)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes=st.lists(SHAPES, min_size=1, max_size=10), data=st.data())
def test_any_order_gives_what_the_jobs_say(
    users: list[ClusterUser], lab: Lab, shapes: list[dict[str, Any]], data: st.DataObject
) -> None:
    Job.objects.all().delete()
    for model in (RollupDay, RollupUser, RollupHour):
        model.objects.all().delete()
    for shape in data.draw(st.permutations(shapes)):
        put(shape, users, lab)
        if data.draw(st.booleans()):
            services.refresh(limit=data.draw(st.integers(1, 5)))
    services.catch_up(cluster=users[0].cluster)
    assert_exact()
    for job in Job.objects.all():
        mark(job)
    services.catch_up(cluster=users[0].cluster)
    assert_exact()
    ran = Job.objects.exclude(start=None).exclude(usage_end=None)
    whole = sum(job.elapsed_s * job.cpus for job in ran if job.usage_end > job.start)
    assert sum(RollupDay.objects.values_list("core_s", flat=True)) == whole
    assert sum(RollupHour.objects.values_list("core_s", flat=True)) == whole


def test_a_long_job_counts_on_each_of_its_days(users: list[ClusterUser], lab: Lab) -> None:
    make_job(users[0], lab, submit=DAY_0, start=DAY_0 + 3600, end=DAY_0 + 9 * 86_400)
    make_job(users[0], lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 2 * 86_400)
    services.refresh()
    assert_exact()
    assert list(RollupDay.objects.order_by("day").values_list("core_s", flat=True)) == [
        2 * 86_400 - 3600, 2 * 86_400, *[86_400] * 7, 0
    ]  # fmt: skip


def test_a_job_that_changes_hands_leaves_no_trace_under_its_old_key(users: list[ClusterUser], lab: Lab) -> None:
    job = make_job(users[0], lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 100_000, cpus=4)
    services.refresh()
    Job.objects.filter(pk=job.pk).update(actor="agent", harness="codex", lab=factories.make_lab(), end=DAY_0 + 50,
                                         usage_end=DAY_0 + 50, elapsed_s=50)  # fmt: skip
    services.mark_dirty(job.cluster, {(date(2026, 7, 1), users[0].pk), (date(2026, 7, 2), users[0].pk)})
    services.refresh()
    assert_exact()
    assert set(RollupDay.objects.values_list("actor", "harness", "core_s")) == {("agent", "codex", 200)}


def test_nothing_is_recomputed_for_those_who_are_not_marked(users: list[ClusterUser], lab: Lab) -> None:
    for user in users:
        make_job(user, lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60)
    services.refresh()
    before = dict(RollupDay.objects.values_list("cluster_user_id", "pk"))
    services.mark_dirty(users[0].cluster, [(date(2026, 7, 1), users[0].pk)])
    assert services.refresh() == 1
    after = dict(RollupDay.objects.values_list("cluster_user_id", "pk"))
    assert after[users[1].pk] == before[users[1].pk]
    assert after[users[0].pk] != before[users[0].pk]


def test_marking_twice_is_one_mark(users: list[ClusterUser]) -> None:
    pair = (date(2026, 7, 1), users[0].pk)
    services.mark_dirty(users[0].cluster, [pair, pair])
    services.mark_dirty(users[0].cluster, [pair])
    assert RollupDirty.objects.count() == 1


def test_a_leased_cluster_is_left_to_its_holder(users: list[ClusterUser], lab: Lab) -> None:
    make_job(users[0], lab, submit=DAY_0)
    assert leases.take("rollups:aster", "somebody else", seconds=60)
    assert services.refresh() == 0
    assert services.catch_up(cluster=users[0].cluster, patience_s=0) is False
    leases.release("rollups:aster", "somebody else")
    assert services.catch_up(cluster=users[0].cluster) is True


def test_many_marks_of_a_day_are_done_in_parts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollups, "MARKS_A_PART", dict.fromkeys(rollups.MARKS_A_PART, 2))
    cluster = factories.make_cluster("aster")
    for _ in range(5):
        user = factories.make_cluster_user(cluster, factories.make_user())
        make_job(user, lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 7200)
    assert services.refresh(cluster=cluster) == 5
    assert_exact()


def test_small_days_are_done_together(users: list[ClusterUser], lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(20):
        make_job(users[day % 2], lab, submit=DAY_0 + day * 86_400, start=DAY_0, end=DAY_0 + day * 86_400 + 7200)
    real, parts = rollups._compute, []
    monkeypatch.setattr(rollups, "_compute", lambda *args: parts.append(args) or real(*args))
    services.refresh()
    assert len(parts) == 5  # one day, two, four, eight, and the other five
    assert_exact()


def test_a_large_day_behind_a_small_one_is_a_part_of_its_own(
    users: list[ClusterUser], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "JOBS_A_PART", 10)
    for day, jobs in ((0, 9), (1, 9), (2, 1), (3, 1), (4, 1)):
        for hour in range(jobs):
            start = DAY_0 + day * 86_400 + hour * 3600
            make_job(users[hour % 2], lab, submit=start, start=start, end=start + 60)
    real, parts = rollups._compute, []
    monkeypatch.setattr(rollups, "_compute", lambda *args: parts.append({mark.day for mark in args[1]}) or real(*args))
    services.refresh()
    assert [len(part) for part in parts] == [1, 2, 1, 1]
    assert_exact()


def test_an_interrupted_refresh_is_finished_by_the_next(
    users: list[ClusterUser], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "MARKS_A_PART", dict.fromkeys(rollups.MARKS_A_PART, 1))
    for user in users:
        make_job(user, lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 90_000)
    real, calls = rollups._replace_hours, []

    def die_at_the_third(*args: Any) -> None:
        calls.append(args)
        real(*args)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(rollups, "_replace_hours", die_at_the_third)
    with pytest.raises(KeyboardInterrupt), transaction.atomic():
        services.refresh()
    assert RollupDirty.objects.exists()
    services.refresh()
    assert_exact()


def between(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen once, between the reading of jobs and the writing of rollups."""
    real, happened = rollups._compute, []

    def compute(*args: Any) -> Any:
        part = real(*args)
        if not happened:
            happened.append(happens())
        return part

    monkeypatch.setattr(rollups, "_compute", compute)


def test_what_changes_while_it_is_computed_is_computed_again(
    users: list[ClusterUser], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in users:
        make_job(user, lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60)
    between(monkeypatch, lambda: make_job(users[0], lab, submit=DAY_0 + 60, start=DAY_0 + 60, end=DAY_0 + 90))
    assert services.refresh() == 2  # the mark that stood, and the one that changed, at the second turn
    assert_exact()


def test_a_new_user_of_a_day_that_is_computed_waits_for_the_next_turn(
    users: list[ClusterUser], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_job(users[0], lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60)
    between(monkeypatch, lambda: make_job(users[1], lab, submit=DAY_0 + 60, start=DAY_0 + 60, end=DAY_0 + 90))
    assert services.refresh() == 2
    assert_exact()


def test_who_lost_the_lease_meanwhile_writes_nothing(
    users: list[ClusterUser], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_job(users[0], lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60)
    between(monkeypatch, lambda: Lease.objects.update(holder="somebody else"))
    assert services.refresh() == 0
    assert not RollupDay.objects.exists() and not RollupHour.objects.exists()
    leases.release("rollups:aster", "somebody else")
    services.refresh()
    assert_exact()


def test_nothing_is_left_of_a_job_that_goes(users: list[ClusterUser], lab: Lab) -> None:
    job = make_job(users[0], lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60)
    services.refresh()
    assert sum(stored_runtimes().values()) == 1
    mark(job)
    job.delete()
    services.refresh()
    assert not RollupUser.objects.exists()
    assert not RollupDay.objects.exists()
    assert not RollupHour.objects.exists()


def test_refreshing_a_day_takes_a_bounded_number_of_queries(
    users: list[ClusterUser], lab: Lab, django_assert_max_num_queries: Any
) -> None:
    for hour in range(20):
        for user in users:
            make_job(user, lab, submit=DAY_0 + hour * 3600, start=DAY_0 + hour * 3600, end=DAY_0 + hour * 3600 + 300)
    with django_assert_max_num_queries(54):
        services.refresh()
    assert_exact()


def test_beat_refreshes_what_is_marked(users: list[ClusterUser], lab: Lab) -> None:
    make_job(users[0], lab, submit=DAY_0)
    assert django_settings.CELERY_BEAT_SCHEDULE["refresh-rollups"]["task"] == refresh_rollups.name
    assert refresh_rollups() == 1
    assert_exact()

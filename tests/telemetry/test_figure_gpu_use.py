"""Figures of GPU use: every job of GPUs is in them, measured or not, and each leads to its jobs."""

from typing import Any
from urllib.parse import parse_qsl

import pytest

from portal.reports import bars, contents, drawing, few, few_cells
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, ClusterUser, Lab, LabMembership
from telemetry import selectors, services
from telemetry.engine import cells
from telemetry.engine.gpu_use import HEAVY_PERCENT
from telemetry.figures import FIGURES, Measured, Readings, drill_query, measure
from telemetry.models import Job
from telemetry.selectors import JobFilter, Period, Scope
from tests import factories
from tests.conftest import sign_in
from tests.telemetry.gpu_rows import DAY_0, gpu_job, reading

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
JULY = Period.month(2026, 7)
GPU_FIGURES = [key for key in FIGURES if key.startswith("gpu-")]
# Job: who, partition, compute, memory; the last nobody measured.
JOBS = {
    1: ("agent", "gpu", 90.0, 80.0), 2: ("agent", "gpu", 90.0, 10.0), 3: ("agent", "gpu", 5.0, 5.0),
    4: ("human", "gpu", 10.0, 90.0), 5: ("human", "small", 60.0, 60.0), 6: ("unknown", "small", 0.0, 0.0),
    7: ("agent", "gpu", None, None),
}  # fmt: skip


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture
def lab(db: None) -> Lab:
    return factories.make_lab("chem")


@pytest.fixture
def users(cluster: Cluster) -> list[ClusterUser]:
    return [factories.make_cluster_user(cluster, factories.make_user()) for _ in range(5)]


@pytest.fixture
def scope(cluster: Cluster, lab: Lab, users: list[ClusterUser]) -> Scope:
    for number, (actor, partition, compute, memory) in JOBS.items():
        gpu_job(users[number % 5], lab, number, actor=actor, partition=partition)
        if compute is not None and memory is not None:
            record(cluster, reading(number, compute, memory))
    # Neither of these belongs to July's jobs with GPUs.
    gpu_job(users[0], lab, 8, start=DAY_0 - 40 * 86_400)
    gpu_job(users[0], lab, 9, gpus=0)
    services.catch_up(cluster=cluster)
    return Scope(SYSTEM_ACTOR, cluster, JULY)


def record(cluster: Cluster, *readings: Any) -> None:
    services.record_gpu_utilisation(actor=SYSTEM_ACTOR, cluster=cluster, readings=readings)


def figure(key: str, scope: Scope) -> Measured:
    found = measure(key, Readings(scope))
    assert found is not None
    return found


def rows(key: str, scope: Scope) -> dict[str, tuple[Any, ...]]:
    return {row.key: row.values for row in figure(key, scope).rows}


def test_the_four_way_split_holds_every_job_and_always_every_actor(scope: Scope) -> None:
    assert rows("gpu-utilisation", scope) == {
        "both": (pytest.approx(2 / 6), 2, 1, 1, 0), "compute": (pytest.approx(1 / 6), 1, 1, 0, 0),
        "memory": (pytest.approx(1 / 6), 1, 0, 1, 0), "low": (pytest.approx(2 / 6), 2, 1, 0, 1),
        "unmeasured": (None, 1, 1, 0, 0),
    }  # fmt: skip
    found = figure("gpu-utilisation", scope)
    assert found.value == pytest.approx(4 / 6) and found.unknown_share == pytest.approx(1 / 6)
    assert found.note == "Measured: 6 of 7 jobs."


def test_each_actors_shares_are_of_its_own_jobs(scope: Scope) -> None:
    third = pytest.approx(1 / 3)
    assert rows("gpu-utilisation-by-actor", scope) == {
        "agent": (third, third, 0, third, 3, 1), "human": (0.5, 0, 0.5, 0, 2, 0), "unknown": (0, 0, 0, 1, 1, 0),
    }  # fmt: skip


def test_stranded_hours_are_what_neither_dimension_needed(scope: Scope) -> None:
    # Two hours each: stranded 10, 10 and 95 % of agents', 10 and 40 % of people's, all of what is not attributed.
    found = rows("gpu-stranded", scope)
    assert found["agent"] == (pytest.approx(2.3), 6, pytest.approx(2.3 / 6))
    assert found["human"][0] == pytest.approx(1.0) and found["unknown"] == (2, 2, 1)
    assert figure("gpu-stranded", scope).value == pytest.approx(5.3)


def test_partitions_and_labs_add_up_to_all_and_lead_with_the_most(scope: Scope, monkeypatch) -> None:
    monkeypatch.setattr(cells, "MIN_PEOPLE", 1)
    partitions = rows("gpu-stranded-partitions", scope)
    assert list(partitions) == ["small", "gpu"]
    assert partitions["small"][0] == pytest.approx(2.8) and partitions["gpu"][4] == 4
    for key in ("gpu-stranded-partitions", "gpu-stranded-labs"):
        found = rows(key, scope).values()
        assert sum(values[0] for values in found) == pytest.approx(5.3)
        assert sum(values[3] for values in found) == 14


def test_groups_of_fewer_than_five_people_stand_in_the_rest(scope: Scope) -> None:
    assert list(rows("gpu-stranded-partitions", scope)) == [""]
    assert list(rows("gpu-stranded-labs", scope)) == ["chem"]
    assert "fewer than 5" in figure("gpu-stranded-partitions", scope).note


def test_what_was_measured_of_fewer_than_five_people_stands_in_the_rest(
    scope: Scope, cluster: Cluster, users: list[ClusterUser], lab: Lab
) -> None:
    for number in range(5):
        gpu_job(users[number], lab, 30 + number, partition="huge")
        gpu_job(users[number], lab, 40 + number, partition="vast")
        record(cluster, reading(40 + number, 60, 10))
    record(cluster, reading(30, 20, 10))
    services.refresh()
    services.refresh_gpu_rollups()
    # Five people ran on huge, but one was measured: what is stranded there would be theirs alone.
    found = rows("gpu-stranded-partitions", scope)
    assert "huge" not in found and "" in found
    for number in range(1, 5):
        record(cluster, reading(30 + number, 20, 10))
    services.refresh()
    services.refresh_gpu_rollups()
    assert "huge" in rows("gpu-stranded-partitions", scope)


def test_what_would_have_done_counts_each_measured_job_once(scope: Scope) -> None:
    found = rows("gpu-would-fit", scope)
    assert sum(values[0] for values in found.values()) == 6
    assert found["mig"][0] == 2 and found["whole"][0] >= 1
    assert figure("gpu-would-fit", scope).value == pytest.approx((6 - found["whole"][0]) / 6)


@pytest.mark.parametrize("key", GPU_FIGURES)
def test_the_jobs_behind_each_row_are_as_many_as_it_says(scope: Scope, key: str, monkeypatch) -> None:
    monkeypatch.setattr(cells, "MIN_PEOPLE", 1)
    found = figure(key, scope)
    place = [column.key for column in found.columns].index("jobs") if key != "gpu-stranded" else None
    for row in found.rows:
        query = dict(parse_qsl(drill_query(FIGURES[key], scope, row)))
        behind = JobFilter.read(query).apply(Job.objects.all(), SYSTEM_ACTOR)
        if place is not None:
            assert behind.count() == row.values[place], query
        else:
            hours = sum(job.gpus * job.elapsed_s for job in behind) / 3600
            assert hours == row.values[1], query


def test_the_threshold_is_written_on_the_figures_of_the_split() -> None:
    for key in ("gpu-utilisation", "gpu-utilisation-by-actor"):
        assert f"heavy is a mean of {HEAVY_PERCENT:.0f}\u202f% and more" in FIGURES[key].definition


def test_a_pi_sees_the_lab_alone(scope: Scope, cluster: Cluster, users: list[ClusterUser]) -> None:
    other = factories.make_lab("bio")
    gpu_job(users[0], other, 20)
    record(cluster, reading(20, 90, 90))
    services.catch_up(cluster=cluster)
    pi = factories.make_user()
    LabMembership.objects.create(lab=other, user=pi, role="pi")
    split = selectors.gpu_split(Scope(factories.actor_of(pi), cluster, JULY))
    assert (split.of().jobs, split.of(quadrant="both").jobs) == (1, 1)
    assert selectors.gpu_split(scope).of().jobs == 8
    nobody = Scope(factories.actor_of(factories.make_user()), cluster, JULY)
    assert selectors.gpu_split(nobody).of().jobs == 0


def test_queries_do_not_grow(scope: Scope, django_assert_num_queries) -> None:
    readings = Readings(scope)
    with django_assert_num_queries(7):
        for key in GPU_FIGURES:
            measure(key, readings)


def test_a_month_without_readings_says_nothing_rather_than_zero(cluster: Cluster, lab: Lab, users) -> None:
    gpu_job(users[0], lab, 1)
    services.catch_up(cluster=cluster)
    scope = Scope(SYSTEM_ACTOR, cluster, JULY)
    assert [figure(key, scope).value for key in GPU_FIGURES] == [None] * len(GPU_FIGURES)
    assert rows("gpu-utilisation", scope)["unmeasured"][1] == 1


def test_memory_that_is_a_peak_is_told(scope: Scope, cluster: Cluster) -> None:
    record(cluster, reading(7, 10, 20, memory_is_peak=True))
    services.catch_up(cluster=cluster)
    assert "Of 1 memory is the peak" in figure("gpu-utilisation", scope).note


def test_the_report_draws_a_bar_an_actor(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "withheld", lambda groups: set[str]())  # the world of this test has few people
    monkeypatch.setattr(few_cells, "left_empty", lambda table, lines: set[tuple[str, str]]())
    content = contents.build(scope).as_json()
    found = {one["key"]: one for part in drawing.sections(content) for one in part["figures"]}
    drawn = {key: one["bars"] for key, one in found.items() if one["bars"]}
    assert list(drawn) == ["gpu-utilisation-by-actor"]
    agents, people, _ = drawn["gpu-utilisation-by-actor"]["rows"]
    assert [part["width"] for part in agents["parts"]] == ["331.3", "331.3", "0.0", "331.3"]
    assert [part["x"] for part in people["parts"]] == ["0.0", "500.0", "500.0", "1000.0"]
    assert "Agents: compute and memory 33.3" in drawn["gpu-utilisation-by-actor"]["label"]


def test_there_is_no_bar_of_what_is_not_measured() -> None:
    columns = [{"title": "x", "unit": "share"}] * 4
    empty = {"title": "t", "columns": columns, "rows": [{"key": "agent", "label": "Agents", "values": [None] * 4}]}
    assert bars.bars_of(empty, drawing.shown) is None
    assert bars.bars_of(empty | {"columns": columns[:3]}, drawing.shown) is None


def test_the_job_list_says_what_it_is_narrowed_to(scope: Scope) -> None:
    page = (
        sign_in(factories.make_user(is_research_computing=True))
        .get("/jobs/?gpu_use=low&gpu_fit=mig&from=2026-07-01")
        .content.decode()
    )
    assert "2 jobs" in page and "GPU use: low" in page and "Would have done: mig" in page

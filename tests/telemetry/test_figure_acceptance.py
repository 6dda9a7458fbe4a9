"""The acceptance figures that telemetry measures: agents' part of submissions, and how those with many jobs poll."""

from datetime import date
from typing import Any

import pytest

from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.figures import Measured, Readings, acceptance, measure
from telemetry.models import SchedulerCalls
from telemetry.selectors import Period, Scope
from tests import factories
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)


@pytest.fixture
def cluster(db: None, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Five agent users with four jobs each who ask 4, 8, 12, 16 and 20 times, one with a single job, two people."""
    monkeypatch.setattr(acceptance, "HIGH_VOLUME", 4)
    cluster, lab = factories.make_cluster("aster"), factories.make_lab("okafor")
    for actor, jobs, calls in [("agent", 4, 4 * n) for n in range(1, 6)] + [("agent", 1, 900), *[("human", 4, 8)] * 2]:
        user = factories.make_cluster_user(cluster, factories.make_user())
        for _ in range(jobs):
            make_job(user, lab, submit=DAY_0, actor=actor)
        SchedulerCalls.objects.create(cluster=cluster, cluster_user=user, day=date(2026, 7, 1), calls=calls)
    services.catch_up(cluster=cluster)
    return cluster


def figure(key: str, cluster: Cluster) -> Measured:
    found = measure(key, Readings(Scope(SYSTEM_ACTOR, cluster, JULY)))
    assert found is not None
    return found


def test_agents_part_is_of_what_is_labelled(cluster: Cluster) -> None:
    found = figure("acceptance-labelled", cluster)
    assert (found.value, found.unknown_share, found.is_met) == (21 / 29, 0, True)


@pytest.mark.parametrize(("limit", "is_met"), [(None, None), (3.0, True), (2.9, False)])
def test_the_median_is_over_people_with_many_jobs(cluster: Cluster, settings: Any, limit: Any, is_met: Any) -> None:
    settings.POLLS_PER_JOB_LIMIT = limit
    found = figure("acceptance-polls", cluster)
    assert (found.value, found.is_met) == (3.0, is_met)
    rows = {row.key: row.values for row in found.rows}
    assert rows["agent"][0] == 3.0 and rows["agent"][-1] == 5
    assert rows["human"] == (None, None, None, None), "two people"


def test_without_counts_it_is_not_measured_yet(cluster: Cluster) -> None:
    SchedulerCalls.objects.all().delete()
    found = figure("acceptance-polls", cluster)
    assert (found.value, found.needs) == (None, "the controller’s counts, which slurm_reader reads")

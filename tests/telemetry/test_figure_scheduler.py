"""Queries of the scheduler stand beside submissions: of the same days, by actor, harness and volume."""

from datetime import date, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, ClusterUser
from telemetry import services
from telemetry.figures import Measured, Readings, measure
from telemetry.figures.scheduler import NO_COUNTS
from telemetry.models import SchedulerCalls
from telemetry.selectors import Period, Scope
from telemetry.selectors.scheduler import asking
from tests import factories
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
FIRST = date(2026, 7, 1)


@pytest.fixture
def cluster(db: None) -> Cluster:
    """Six people with Claude Code, five with Codex, two with Aider, and six by hand; two jobs each on the first."""
    cluster, lab = factories.make_cluster("aster"), factories.make_lab("okafor")
    for harness, people in (("claude-code", 6), ("codex", 5), ("aider", 2), ("", 6)):
        for _ in range(people):
            user = factories.make_cluster_user(cluster, factories.make_user())
            for _ in range(2):
                make_job(user, lab, submit=DAY_0, actor="agent" if harness else "human", harness=harness)
            make_job(user, lab, submit=DAY_0 + 86_400, actor="human")  # on a day without counts
            ask(user, 7 if harness else 3)
    services.catch_up(cluster=cluster)
    return cluster


def ask(user: ClusterUser, calls: int, days: int = 0) -> None:
    SchedulerCalls.objects.create(
        cluster=user.cluster, cluster_user=user, day=FIRST + timedelta(days=days), calls=calls
    )


def figure(key: str, cluster: Cluster) -> Measured:
    found = measure(key, Readings(Scope(actor=SYSTEM_ACTOR, cluster=cluster, period=JULY)))
    assert found is not None
    return found


def test_queries_are_set_against_the_jobs_of_the_same_days(cluster: Cluster) -> None:
    found = figure("queries-per-job", cluster)
    rows = {row.key: row.values for row in found.rows}
    assert found.value == 3.5
    assert rows["agent"] == (3.5, 13 * 7, 26, 13)
    assert rows["human"] == (1.5, 18, 12, 6)
    assert rows["unknown"] == (None, 0, 0, 0)
    assert rows["harness-claude-code"] == (3.5, 42, 12, 6)


def test_harnesses_of_few_people_are_not_told_apart(cluster: Cluster) -> None:
    rows = {row.key: row.values for row in figure("queries-per-job", cluster).rows}
    # Two with Aider would be found by subtraction: the five with Codex go with them.
    assert "harness-aider" not in rows and "harness-codex" not in rows
    assert rows["harness-others"] == (3.5, 49, 14, 7)


def test_who_only_asks_is_not_attributed(cluster: Cluster) -> None:
    for _ in range(5):
        ask(factories.make_cluster_user(cluster, factories.make_user()), 10)
    found = figure("queries-per-job", cluster)
    assert {row.key: row.values for row in found.rows}["unknown"] == (None, 50, 0, 5)
    assert found.unknown_share == 50 / (13 * 7 + 18 + 50)


@pytest.mark.parametrize("key", ["queries-per-job", "queries-high-volume"])
def test_few_people_are_not_had_from_the_share_that_is_not_attributed(cluster: Cluster, key: str) -> None:
    ask(factories.make_cluster_user(cluster, factories.make_user()), 10)
    found = figure(key, cluster)
    assert not any(row.values[1] for row in found.rows if row.key.startswith("unknown"))
    assert found.unknown_share is None


def test_by_volume_each_login_name_stands_once(cluster: Cluster) -> None:
    found = figure("queries-high-volume", cluster)
    rows = {row.key: row.values for row in found.rows}
    assert rows == {"agent-1": (3.5, 13 * 7, 26, 13), "human-1": (1.5, 18, 12, 6)}
    assert found.value is None


def test_few_people_of_one_volume_are_not_had_by_subtraction(cluster: Cluster) -> None:
    user, lab = factories.make_cluster_user(cluster, factories.make_user()), factories.make_lab("small")
    make_job(user, lab, submit=DAY_0, array_tasks=2000, actor="agent", harness="codex")
    ask(user, 9000)
    services.catch_up(cluster=cluster)
    found = figure("queries-high-volume", cluster)
    # The thirteen others of few jobs would lay the one open: their row goes with it.
    assert {row.key for row in found.rows} == {"agent-others", "human-1"}
    assert {row.key: row.values[3] for row in found.rows}["agent-others"] == 14
    assert found.value is None and "fewer than 5 people" in found.note


def test_a_month_without_counts_says_what_would_read_them(cluster: Cluster) -> None:
    SchedulerCalls.objects.all().delete()
    found = figure("queries-per-job", cluster)
    assert (found.value, found.note) == (None, NO_COUNTS)


def test_it_takes_four_queries(cluster: Cluster) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert len(asking(Scope(actor=SYSTEM_ACTOR, cluster=cluster, period=JULY))) == 19
    assert len(queries) == 4

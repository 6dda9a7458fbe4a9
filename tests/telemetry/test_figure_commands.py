"""What agents and people run on login nodes comes to the figures of the published measurement."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from principals.actors import SYSTEM_ACTOR
from principals.models import AgentSession, Cluster
from telemetry import services
from telemetry.figures import FIGURES, Measured, Readings, measure
from telemetry.figures.commands import FIGURES as OURS
from telemetry.figures.commands import HIDDEN, NO_BASELINE, NOT_HEARD
from telemetry.models import ActivityDay, BaselineStudy, CollectorReport, ExperimentLoop, PollingLoop
from telemetry.selectors import Period, Scope
from telemetry.selectors.watched import join_spans
from tests import factories
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
NOON = datetime(2026, 7, 8, 12, tzinfo=UTC)
AGENT = {
    "commands": 100, "category:text": 60, "category:slurm": 40, "tool:head": 30, "tool:sed": 10, "tool:vim": 1,
    "scheduler_query": 30, "submission": 10, "tree_walk": 5, "recursive_search": 4, "rm_force": 3, "fetch:code": 1,
}  # fmt: skip
PERSON = {"commands": 20, "category:slurm": 15, "category:text": 5, "tool:head": 2, "scheduler_query": 12,
          "submission": 6}  # fmt: skip


def work(
    cluster: Cluster,
    login: int,
    kind: str,
    harness: str,
    counts: Mapping[str, int],
    *,
    hours: int = 1,
    study: Any = None,
) -> AgentSession:
    """Let somebody have a session of some hours with some commands."""
    user = factories.make_cluster_user(cluster, factories.make_user())
    session = AgentSession.objects.create(
        cluster=cluster, cluster_user=user, host="login1", kind=kind, harness=harness, started=NOON,
        ended=NOON + timedelta(hours=hours), process=f"boot/{login}",
    )  # fmt: skip
    ActivityDay.objects.create(
        cluster=cluster, day=NOON.date(), host="login1", session=session, cluster_user=user, harness=harness,
        driver="agent" if kind == "agent" else "human", minutes=30, counts=dict(counts), study=study,
    )  # fmt: skip
    return session


def watch(cluster: Cluster, since: datetime, until: datetime, *, host: str = "login1", study: str = "") -> None:
    """Let a collector have watched a node for some time."""
    CollectorReport.objects.create(
        cluster=cluster, host=host, boot="boot", run=uuid4(), batch=uuid4(), version="0.1.0", mode="events",
        study=study, since=since, until=until,
    )  # fmt: skip


@pytest.fixture
def cluster(db: None) -> Cluster:
    """Six people with Claude Code, five with Codex, two with Aider; five in a study; and what nobody's session did."""
    cluster, lab = factories.make_cluster("aster"), factories.make_lab("okafor")
    study = BaselineStudy.objects.create(
        cluster=cluster, name="summer", purpose="A baseline", approved_by="IRB 26-1", starts=NOON, until=JULY.ends
    )
    login = 0
    for harness, people in (("claude-code", 6), ("codex", 5), ("aider", 2)):
        for number in range(people):
            session = work(cluster, login, "agent", harness, AGENT, hours=1 + number)
            make_job(session.cluster_user, lab, submit=DAY_0, actor="agent", harness=harness, array_tasks=10)
            ExperimentLoop.objects.create(session=session, submitted=NOON, again=NOON + timedelta(minutes=9 + number))
            PollingLoop.objects.create(session=session, first=NOON, last=NOON, queries=15, period_s=2.0)
            login += 1
    for _ in range(5):
        session = work(cluster, login, "interactive", "", PERSON, hours=2, study=study)
        make_job(session.cluster_user, lab, submit=DAY_0, actor="human")
        ExperimentLoop.objects.create(session=session, submitted=NOON, again=NOON + timedelta(minutes=31))
        login += 1
    ActivityDay.objects.create(
        cluster=cluster, day=NOON.date(), host="login1", driver="unknown", minutes=9, counts={"commands": 350}
    )
    watch(cluster, JULY.starts, JULY.ends, study="summer")
    services.catch_up(cluster=cluster)
    return cluster


def figure(key: str, cluster: Cluster) -> Measured:
    found = measure(key, Readings(Scope(actor=SYSTEM_ACTOR, cluster=cluster, period=JULY)))
    assert found is not None
    return found


def rows(key: str, cluster: Cluster) -> dict[str, tuple[Any, ...]]:
    return {row.key: row.values for row in figure(key, cluster).rows}


def test_a_rate_is_over_the_minutes_in_which_a_session_was_open(cluster: Cluster) -> None:
    found = rows("command-rate", cluster)
    # 13 agents' sessions of 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 1, 2 hours: the middle one has 3.
    assert found["agent"] == (pytest.approx(100 / 180), *found["agent"][1:3], 13, 13)
    assert found["agent"][1] <= found["agent"][0] <= found["agent"][2]
    assert found["human"] == (pytest.approx(20 / 120), None, None, 5, 5)
    assert found["harness-claude-code"][3:] == (6, 6)


def test_a_rate_counts_no_minute_in_which_nobody_watched(cluster: Cluster) -> None:
    CollectorReport.objects.all().delete()
    half_hour = timedelta(minutes=30)
    watch(cluster, NOON - half_hour, NOON + half_hour, study="summer")
    watch(cluster, NOON + half_hour, NOON + 2 * half_hour)  # no study: people's shells were not watched
    watch(cluster, NOON + 10 * half_hour, NOON + 90 * half_hour, host="login2")
    found = rows("command-rate", cluster)
    assert found["agent"][0] == pytest.approx(100 / 60)
    assert found["human"][0] == pytest.approx(20 / 30)
    assert (found["agent"][3], found["human"][3]) == (13, 5)


def test_a_period_that_nobody_watched_has_no_rate(cluster: Cluster) -> None:
    CollectorReport.objects.all().delete()
    assert rows("command-rate", cluster)["agent"] == (None, None, None, 0, 13)


@pytest.mark.parametrize(
    ("spans", "first", "last", "seconds"),
    [
        ([(0, 10), (20, 30)], 5, 25, 10), ([(0, 10), (5, 12), (12, 20)], 0, 99, 20), ([(5, 5)], 0, 9, 0),
        ([(10, 20)], 0, 5, 0), ([(10, 20)], 25, 30, 0), ([], 0, 9, 0), ([(0, 60), (0, 10)], 20, 40, 20),
    ],
)  # fmt: skip
def test_spans_that_overlap_count_once(
    spans: list[tuple[float, float]], first: float, last: float, seconds: float
) -> None:
    joined = join_spans(spans)
    assert joined.until(last) - joined.until(first) == seconds


def test_a_harness_of_few_people_is_left_empty(cluster: Cluster) -> None:
    found = figure("command-rate", cluster)
    values = {row.key: row.values for row in found.rows}
    assert values["harness-aider"] == (None,) * 5
    assert values["harness-codex"] == (None,) * 5, "two people’s sessions could be had from it and the agents’ row"
    assert values["harness-claude-code"][3:] == (6, 6)
    assert HIDDEN in found.note


def test_calls_of_few_people_stand_in_no_row_of_many(cluster: Cluster) -> None:
    for day in ActivityDay.objects.filter(harness="claude-code").order_by("pk")[:3]:
        day.counts |= {"tree_walk": 50, "category:build": 7, "category:editors": 9, "tool:wc": 6, "tool:awk": 8}
        day.save(update_fields=["counts"])
    ActivityDay.objects.exclude(counts__has_key="category:build").update(counts={"commands": 9, "category:text": 9})
    assert rows("tree-walks", cluster)["agent"] == (None,) * 4
    classes, tools = rows("command-classes", cluster), rows("file-tools", cluster)
    assert classes["build"][:2] == classes["editors"][:2] == (None, None)
    assert tools["wc"][0] is tools["awk"][0] is None


def test_the_sum_of_destructive_commands_does_not_tell_of_one_row(cluster: Cluster) -> None:
    day = ActivityDay.objects.filter(harness="codex").first()
    assert day is not None
    day.counts |= {"kill": 5}
    day.save(update_fields=["counts"])
    found = figure("destructive-commands", cluster)
    assert {row.key: row.values for row in found.rows}["kill"][:3] == (None, None, None)
    assert found.value is None


def test_classes_are_means_for_each_person_and_shares_of_all(cluster: Cluster) -> None:
    found = rows("command-classes", cluster)
    assert found["text"] == (60, 0.6, 5, 0.25)
    assert found["build"] == (0, 0, 0, 0)
    assert figure("command-classes", cluster).value == 100


def test_what_nobody_is_known_to_have_driven_is_told_of_every_figure(cluster: Cluster) -> None:
    for each in OURS:
        assert figure(each.key, cluster).unknown_share == pytest.approx(350 / (1300 + 100 + 350)), each.key


def test_loops_have_a_median_and_shares_within_bounds(cluster: Cluster) -> None:
    assert rows("loop-time", cluster)["agent"][0] == 11 * 60
    assert rows("loop-time", cluster)["human"] == (31 * 60, None, None, 5, 5)
    assert rows("loops-closed", cluster)["agent"] == (pytest.approx(6 / 13), 1, 1, 1, 13)
    assert rows("loops-closed", cluster)["human"] == (0, 0, 1, 1, 5)


def test_tools_are_set_against_a_hundred_submissions_of_accounting(cluster: Cluster) -> None:
    found = rows("file-tools", cluster)
    assert found["head"] == (300, 200, 1.5)
    assert found["vim"] == (10, 0, None)
    assert found["all"] == (400, 200, 2)


def test_queries_by_command_and_those_in_loops(cluster: Cluster) -> None:
    assert rows("query-commands", cluster)["agent"] == (3, 390, 130, 13)
    assert rows("query-commands", cluster)["human"] == (2, 60, 30, 5)
    assert rows("polling-loops", cluster)["agent"] == (0.5, 13, 195, 2, 13)


def test_walks_and_removals_are_counted_for_each_person(cluster: Cluster) -> None:
    assert rows("tree-walks", cluster)["agent"] == (5, 65, 13, 13)
    assert rows("recursive-searches", cluster)["human"] == (0, 0, 0, 5)
    assert rows("destructive-commands", cluster)["rm_force"] == (39, 13, 3, 0, 0, None)


def test_fetches_are_shares_of_people(cluster: Cluster) -> None:
    found = rows("external-fetches", cluster)
    assert found["any"] == (1, 13, 0, 0)
    assert found["many"] == (0, 0, 0, 0)
    assert found["code"] == (1, 13, 0, 0)


def test_people_s_rows_name_their_study_or_say_that_there_is_none(cluster: Cluster) -> None:
    assert "study summer" in figure("command-rate", cluster).note
    ActivityDay.objects.filter(driver="human").delete()
    assert NO_BASELINE in figure("command-rate", cluster).note


def test_where_no_collector_was_heard_nothing_is_said(db: None) -> None:
    cluster = factories.make_cluster("aster")
    for each in OURS:
        assert (figure(each.key, cluster).value, figure(each.key, cluster).note) == (None, NOT_HEARD)


def test_a_session_that_was_declared_alone_is_none_that_was_seen(cluster: Cluster) -> None:
    before = rows("command-rate", cluster)["agent"]
    AgentSession.objects.filter(harness="aider").update(process="")
    ActivityDay.objects.filter(harness="aider").delete()
    assert rows("command-rate", cluster)["agent"][3:] == (before[3] - 2, before[4] - 2)


def test_few_queries_read_all_of_them(cluster: Cluster) -> None:
    readings = Readings(Scope(actor=SYSTEM_ACTOR, cluster=cluster, period=JULY))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert readings.commands
    assert len(queries) == 7
    assert all(FIGURES[each.key].measure is each.measure for each in OURS)

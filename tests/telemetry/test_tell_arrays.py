"""Array jobs as events: a few tasks are told one by one, many by how many are in which state."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core import clock, topics
from portal.core.models import LiveEvent
from principals import permissions
from principals.engine import tokens
from principals.models import AgentToken, Cluster, ClusterUser
from telemetry.models import ArrayTold
from telemetry.models.array_news import APART
from tests import factories
from tests.conftest import Cast
from tests.telemetry.logs import ingest, iso, live_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
MINE = {"User": "colleague", "Account": "okafor_lab"}
SUBMIT = iso(60)


@pytest.fixture
def cluster(cast: Cast) -> Cluster:
    return cast.cluster


def task(number: int, state: str, **values: str) -> str:
    return live_row(100 + number, state, JobID=f"100_{number}", Submit=SUBMIT, **MINE | values)


def waiting(tasks: str) -> str:
    return live_row(100, "PENDING", JobID=f"100_[{tasks}]", Submit=SUBMIT, **MINE)


def let_a_second_pass() -> None:
    ArrayTold.objects.update(told=clock.now() - APART)


def told(cluster: Cluster, *rows: str) -> list[tuple[str, list[str], dict[str, Any]]]:
    """What some rows, stored together, bring: names, topics without the cluster's and the lab's, payloads."""
    before = LiveEvent.objects.count()
    let_a_second_pass()
    ingest(cluster, text(*rows))
    user = ClusterUser.objects.get(login="colleague").pk
    wide = {f"user-jobs:{user}": "mine"}
    return [
        (each.name, [wide.get(one, one) for one in each.topics if not one.startswith(("lab-", "all-"))], each.payload)
        for each in LiveEvent.objects.order_by("id")[before:]
    ]


def test_a_small_array_is_told_task_by_task_and_its_topic_has_the_counts(cluster: Cluster):
    (submitted, array) = told(cluster, waiting("1-20"))
    assert submitted[:2] == ("job.submitted", ["job:aster:100", "mine"])
    assert array[:2] == ("job.array", ["array:aster:100"])
    assert (array[2]["counts"], array[2]["tasks"], array[2]["over"]) == ({"PENDING": 20}, 20, False)


def test_a_large_array_is_one_event_a_batch_for_whoever_hears_more_than_a_job(cluster: Cluster):
    told(cluster, waiting("1-1000"))
    rows = [task(number, "RUNNING") for number in range(1, 51)]
    events = told(cluster, *rows, waiting("51-1000"))
    assert [each[:2] for each in events[:2]] == [("job.started", [f"job:aster:{100 + n}"]) for n in (1, 2)]
    assert [each[0] for each in events].count("job.array") == 1
    name, heard, facts = events[-1]
    assert (name, heard) == ("job.array", ["array:aster:100", "mine"])
    assert (facts["counts"], facts["text"]) == ({"RUNNING": 50, "PENDING": 950}, "array: 50 running, 950 pending")
    assert (facts["raw_id"], facts["over"], facts["exit_status"], facts["worst"]) == (100, False, None, "")


def test_its_end_says_how_the_worst_task_ended(cluster: Cluster):
    told(cluster, waiting("1-2"))
    told(cluster, task(1, "FAILED", ExitCode="0:9"), waiting("2"))
    last = live_row(100, "COMPLETED", JobID="100_2", Submit=SUBMIT, **MINE)
    *_, (_, _, facts) = told(cluster, last)
    assert (facts["over"], facts["exit_status"], facts["worst"]) == (True, 137, "failed, ended by SIGKILL (9)")
    assert facts["counts"] == {"COMPLETED": 1, "FAILED": 1}


def test_a_requeued_task_counts_once(cluster: Cluster):
    told(cluster, task(1, "RUNNING"))
    again = live_row(101, "PENDING", JobID="100_1", Submit=iso(5), **MINE)
    *_, (_, _, facts) = told(cluster, task(1, "REQUEUED"), again)
    assert facts["counts"] == {"PENDING": 1}


def test_jobs_without_tasks_cost_no_query_more(cluster: Cluster):
    with CaptureQueriesContext(connection) as queries:
        assert [each[0] for each in told(cluster, live_row(1, "RUNNING", **MINE))] == ["job.started"]
    assert not [each["sql"] for each in queries if "SUM" in each["sql"]]


def test_a_campaign_is_heard_by_whose_label_it_is(cast: Cast, cluster: Cluster):
    ((_, heard, _),) = told(cluster, live_row(1, "RUNNING", **MINE, Comment="campaign=dock"))
    user = ClusterUser.objects.get(login="colleague").pk
    assert f"campaign:{user}:dock" in heard
    ((_, heard, _),) = told(cluster, live_row(2, "RUNNING", **MINE))
    assert not any(topic.startswith("campaign:") for topic in heard)
    agent = actor_of(cast.agent)
    assert topics.authorise(agent, f"campaign:{user}:dock")
    for topic in (f"campaign:{user}:", f"campaign:{user}", "campaign:dock", f"campaign:{user}:a:b"):
        assert not topics.authorise(agent, topic)
    assert not topics.authorise(actor_of(cast.foreign_agent), f"campaign:{user}:dock")


def test_an_agent_hears_its_own_persons_arrays_alone(cast: Cast, cluster: Cluster):
    told(cluster, waiting("1-3"))
    assert topics.authorise(actor_of(cast.agent), "array:aster:100")
    assert not topics.authorise(actor_of(cast.foreign_agent), "array:aster:100")
    assert not topics.authorise(actor_of(cast.agent), "array:aster:999")


def actor_of(agent: Any) -> Any:
    key = tokens.parse_token(factories.make_token(agent)).key  # type: ignore[union-attr]
    return permissions.actor_for_agent(AgentToken.objects.select_related("agent__owner", "agent__lab").get(key=key))

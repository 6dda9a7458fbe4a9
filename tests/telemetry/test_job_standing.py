"""How jobs stand, by the ids people write: whole arrays in one answer, and nobody else's."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core import live
from principals.models import Cluster
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.logs import ingest, live_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
MINE = {"User": "colleague", "Account": "okafor_lab"}


@pytest.fixture
def jobs(cast: Cast) -> Cluster:
    ingest(
        cast.cluster,
        text(
            live_row(1, "FAILED", ExitCode="3:0", **MINE),
            live_row(2, "PENDING", JobID="2_[3-9]", **MINE),
            live_row(11, "RUNNING", JobID="2_1", **MINE),
            live_row(12, "COMPLETED", JobID="2_2", **MINE),
            live_row(5, "TIMEOUT", JobID="5+0", **MINE),
            live_row(6, "COMPLETED", JobID="5+1", **MINE),
            live_row(7, "RUNNING", User="manager", Account="okafor_lab"),
        ),
    )
    return cast.cluster


def told(api: Api, ids: str, **query: str) -> list[tuple[object, ...]]:
    answer = api.get("/jobs/standing", ids=ids, **query)
    assert answer.status_code == 200, answer.content
    names = ("asked", "known", "state", "over", "exit_status")
    return [tuple(item[name] for name in names) for item in answer.json()["items"]]


def test_every_form_of_an_id_is_answered(jobs: Cluster, agent_api: Api):
    assert told(agent_api, "1 2 2_1 2_2 2_5 2_[1-2] 5 5+1 404 2_99") == [
        ("1", True, "FAILED", True, 3),
        ("2", True, "RUNNING", False, None),
        ("2_1", True, "RUNNING", False, None),
        ("2_2", True, "COMPLETED", True, 0),
        ("2_5", True, "PENDING", False, None),
        ("2_[1-2]", True, "RUNNING", False, None),
        ("5", True, "TIMEOUT", True, 202),
        ("5+1", True, "COMPLETED", True, 0),
        ("404", False, "", False, None),
        ("2_99", False, "", False, None),
    ]  # fmt: skip
    array = agent_api.get("/jobs/standing", ids="2").json()["items"][0]
    assert array["counts"] == {"RUNNING": 1, "COMPLETED": 1, "PENDING": 7}
    assert (array["cluster"], array["job"]["job_id"], array["looked"]) == ("aster", "2_2", None)


def test_many_ranges_are_asked_for_in_parts(jobs: Cluster, agent_api: Api):
    ranges = [f"2_[{first}-{first + 1}]" for first in range(41)]
    assert len(told(agent_api, " ".join(ranges[:40]))) == 40
    refused = agent_api.get("/jobs/standing", ids=" ".join(ranges))
    assert (refused.status_code, refused.json()["code"]) == (422, "too_many_ranges")


def test_plain_jobs_take_the_same_queries_however_many(jobs: Cluster, agent_api: Api):
    ingest(jobs, text(*(live_row(number, "RUNNING", **MINE) for number in range(30, 50))))
    told(agent_api, "1")
    with CaptureQueriesContext(connection) as of_one:
        told(agent_api, "1")
    with CaptureQueriesContext(connection) as of_many:
        assert len(told(agent_api, " ".join(map(str, [1, *range(30, 50)])))) == 21
    assert len(of_many) == len(of_one)


def test_an_array_of_which_a_task_is_not_told_yet_is_not_over(jobs: Cluster, agent_api: Api):
    """Accounting told of the last task before one that ended earlier: a real Slurm under load does."""
    line = {"SubmitLine": "sbatch --array=1-2 job.sh"}
    ingest(jobs, text(live_row(20, "COMPLETED", JobID="20_2", **line, **MINE)))
    assert told(agent_api, "20 20_2") == [
        ("20", True, "COMPLETED", False, None), ("20_2", True, "COMPLETED", True, 0)
    ]  # fmt: skip
    ingest(jobs, text(live_row(21, "FAILED", JobID="20_1", ExitCode="5:0", **line, **MINE)))
    assert told(agent_api, "20") == [("20", True, "FAILED", True, 5)]


def test_another_persons_job_is_unknown_even_with_the_lab_s_right(jobs: Cluster, cast: Cast, agent_api: Api):
    assert told(agent_api, "7") == [("7", False, "", False, None)]
    assert told(Api(factories.make_token(cast.agent, "jobs:read", "lab:read")), "7")[0][1] is False
    assert told(Api(factories.make_token(cast.foreign_agent)), "1")[0][1] is False


def test_it_says_up_to_which_event_it_is(jobs: Cluster, agent_api: Api):
    assert agent_api.get("/jobs/standing", ids="1").json()["seq"] == 0  # told, and not numbered yet
    live.number_committed()
    assert agent_api.get("/jobs/standing", ids="1").json()["seq"] == live.newest_seq() > 0


def test_a_number_on_two_clusters_needs_a_name(jobs: Cluster, cast: Cast, agent_api: Api):
    other = factories.make_cluster("boreas")
    factories.make_cluster_user(other, cast.colleague)
    ingest(other, text(live_row(1, "RUNNING", **MINE, Cluster="boreas")))
    refused = agent_api.get("/jobs/standing", ids="1")
    assert (refused.status_code, refused.json()["code"]) == (409, "cluster_ambiguous")
    assert told(agent_api, "1", cluster="boreas") == [("1", True, "RUNNING", False, None)]
    assert told(agent_api, "1", cluster="nowhere")[0][1] is False


@pytest.mark.parametrize("ids", ["7.batch", "x", "1 12a", " ".join(map(str, range(201))), ""])
def test_what_is_no_job_is_refused(jobs: Cluster, agent_api: Api, ids: str):
    assert agent_api.get("/jobs/standing", ids=ids).status_code == 422


def test_parts_of_one_array_are_read_once(jobs: Cluster, agent_api: Api):
    def queries(ids: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            assert agent_api.get("/jobs/standing", ids=ids).status_code == 200
        return sum('"telemetry_job"."exit_code"' in query["sql"].partition(" FROM ")[0] and
                   '"telemetry_job"."submit_line"' not in query["sql"] for query in asked)  # fmt: skip

    assert queries("2_[1-2]") == queries("2 2_[1-2] 2_[3-9] 2_[1-9] 2_[2-4]") == 1

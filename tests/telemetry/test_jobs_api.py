"""The jobs an agent may read, and the topics it may hear."""

import pytest

from portal.core import clock, topics
from principals import permissions
from principals.models import AgentToken, Cluster, ClusterUser
from telemetry.models import Job
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.logs import ingest, job_row, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs(cast: Cast) -> Cluster:
    """Three jobs of the agent's owner, one of a lab mate, one of another lab."""
    mine = {"User": "colleague", "Account": "okafor_lab"}
    ingest(
        cast.cluster,
        text(
            job_row(1, **mine, Comment="campaign=dock"),
            job_row(2, **mine, Submit="2026-07-01T10:01:00", State="RUNNING", End="Unknown"),
            job_row(3, **mine, Submit="2026-07-01T10:02:00", ExitCode="0:9", State="FAILED"),
            job_row(4, User="manager", Account="okafor_lab", WorkDir="/home/manager", Comment="campaign=dock"),
            job_row(5, User="outsider", Account="marlowe_lab"),
        ),
    )
    return cast.cluster


def ids(answer) -> list[int]:
    assert answer.status_code == 200, answer.content
    return [job["raw_id"] for job in answer.json()["items"]]


def test_an_agent_sees_its_owners_jobs_newest_first(jobs: Cluster, agent_api: Api):
    answer = agent_api.get("/jobs")
    assert ids(answer) == [3, 2, 1]
    assert {job["user"] for job in answer.json()["items"]} == {"colleague"}
    assert answer.json()["items"][0]["outcome"] == "failed, ended by SIGKILL (9)"


def test_an_agent_asks_for_its_own_jobs_alone(jobs: Cluster, cast: Cast, agent_api: Api):
    Job.objects.filter(raw_id=2).update(agent=cast.agent)
    Job.objects.filter(raw_id=3).update(agent=cast.foreign_agent)
    answer = agent_api.get("/jobs", agent=cast.agent.name)
    assert (ids(answer), answer.json()["items"][0]["agent"]) == ([2], cast.agent.name)
    assert [job["agent"] for job in agent_api.get("/jobs").json()["items"]] == ["", cast.agent.name, ""]
    assert ids(agent_api.get("/jobs", agent=cast.foreign_agent.name)) == []


def test_a_job_is_found_by_its_cluster_in_any_case(jobs: Cluster, agent_api: Api):
    assert agent_api.get("/jobs/ASTER/1").json()["cluster"] == "aster"
    assert agent_api.get("/jobs/boreas/1").status_code == 404


def test_filters_and_pages(jobs: Cluster, agent_api: Api):
    assert ids(agent_api.get("/jobs", state="running")) == [2]
    assert ids(agent_api.get("/jobs", state="active")) == []  # its end should have come long ago
    Job.objects.filter(raw_id=2).update(usage_end=clock.now())
    assert ids(agent_api.get("/jobs", state="active")) == [2]
    assert ids(agent_api.get("/jobs", state="failed")) == [3]
    assert ids(agent_api.get("/jobs", campaign="dock")) == [1]
    assert ids(agent_api.get("/jobs", since="2026-07-01T10:01:00Z")) == [3, 2]
    first = agent_api.get("/jobs", limit=2)
    assert (ids(first), ids(agent_api.get("/jobs", limit=2, after=first.json()["next"]))) == ([3, 2], [1])


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 201}, {"after": "x"}, {"since": "2026-07-01"}])
def test_a_wrong_query_is_explained(agent_api: Api, query: dict):
    assert agent_api.get("/jobs", **query).status_code == 422


def test_lab_read_lends_no_sight_that_the_owner_lacks(jobs: Cluster, cast: Cast):
    api = Api(factories.make_token(cast.agent, "jobs:read", "lab:read"))
    assert 4 not in ids(api.get("/jobs"))
    assert api.get("/jobs/aster/4").status_code == 404


def test_with_lab_read_others_jobs_show_without_names_or_words(jobs: Cluster, cast: Cast):
    permissions.grant_look_at_lab(cast.colleague, cast.lab)
    api = Api(factories.make_token(cast.agent, "jobs:read", "lab:read"))
    answer = api.get("/jobs")
    assert sorted(ids(answer)) == [1, 2, 3, 4]
    other = next(job for job in answer.json()["items"] if job["raw_id"] == 4)
    assert (other["user"], other["own"], other["job_name"], other["campaign"]) == ("other", False, "", "")
    assert "manager" not in answer.content.decode()
    assert ids(api.get("/jobs", campaign="dock")) == [1]
    assert "manager" not in api.get("/jobs/aster/4").content.decode()


def test_one_job_by_its_id(jobs: Cluster, agent_api: Api):
    job = agent_api.get("/jobs/aster/1").json()
    assert (job["submit_line"], job["account"], job["lab"], job["campaign"]) == (
        "sbatch run.sh", "okafor_lab", "okafor", "dock"
    )  # fmt: skip
    for address in ("/jobs/aster/4", "/jobs/aster/5", "/jobs/nowhere/1", "/jobs/aster/99", f"/jobs/aster/{10**30}"):
        assert (agent_api.get(address).status_code, agent_api.get(address).json()["code"]) == (404, "job_unknown")


def test_a_task_of_an_array_is_not_the_job_whose_digits_it_has(jobs: Cluster, agent_api: Api):
    assert agent_api.get("/jobs/aster/1").status_code == 200
    answer = agent_api.get("/jobs/aster/0_1")
    assert answer.status_code == 422
    assert "'0_1' is no raw job id" in answer.json()["detail"]


def test_it_validates_the_scope(cast: Cast, service_api: Api):
    assert Api(factories.make_token(cast.agent, "me:read")).get("/jobs").status_code == 403
    assert service_api.get("/jobs").status_code == 403


def test_a_page_of_jobs_costs_a_fixed_number_of_queries(jobs: Cluster, agent_api: Api, django_assert_max_num_queries):
    agent_api.get("/jobs")
    with django_assert_max_num_queries(6):
        agent_api.get("/jobs")


# --- topics ----------------------------------------------------------------------------------------------
def test_who_may_hear_of_jobs(jobs: Cluster, cast: Cast):
    token = AgentToken.objects.get(key=factories.make_token(cast.agent, "lab:read").split("_")[1].split(".")[0])
    agent, people = permissions.actor_for_agent(token), factories.actor_of
    user_id = ClusterUser.objects.get(login="colleague", cluster=jobs).pk
    lab = f"lab-jobs:{cast.lab.pk}"
    heard = {
        "agent": (agent, {"job:aster:1", f"user-jobs:{user_id}"}),
        "owner": (people(cast.colleague), {"job:aster:1", f"user-jobs:{user_id}"}),
        "pi": (people(cast.pi), {"job:aster:1", "job:aster:4", lab}),
        "outsider": (people(cast.outsider), set()),
        "staff": (
            people(cast.staff), {"job:aster:1", "job:aster:4", f"user-jobs:{user_id}", lab, "all-jobs:aster"},
        ),
    }  # fmt: skip
    asked = ["job:aster:1", "job:aster:4", f"user-jobs:{user_id}", lab, "all-jobs:aster", "job:aster:77", "job:x"]
    for name, (actor, expected) in heard.items():
        assert {topic for topic in asked if topics.authorise(actor, topic)} == expected, name


def test_what_each_hears_unless_it_asks(jobs: Cluster, cast: Cast):
    def heard(user) -> set[str]:
        return {topic.partition(":")[0] for topic in topics.default_topics(factories.actor_of(user))}

    assert "user-jobs" in heard(cast.colleague) and "all-jobs" not in heard(cast.colleague)
    assert "lab-jobs" in heard(cast.pi) and "all-jobs" in heard(cast.staff)
    assert Job.objects.count() == 5

"""Questions about jobs have a budget for each token: beyond it the answer says what to do instead."""

import pytest

from principals.models import Cluster
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.logs import ingest, job_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("standing_clock")]
QUESTIONS = ("/jobs", "/jobs?agent=okafor-docking", "/jobs/aster/1", "/jobs/standing?ids=1")


@pytest.fixture
def cluster(cast: Cast, settings) -> Cluster:
    settings.POLLS_PER_MINUTE = len(QUESTIONS)
    ingest(cast.cluster, text(job_row(1, User="colleague", Account="okafor_lab")))
    return cast.cluster


def test_questions_of_every_kind_use_one_budget_and_the_refusal_says_what_to_do(cluster, agent_api: Api) -> None:
    assert [agent_api.get(path).status_code for path in QUESTIONS] == [200] * len(QUESTIONS)
    for path in (*QUESTIONS, "/slurm/squeue"):
        refused = agent_api.get(path)
        said = refused.json()
        assert (refused.status_code, said["code"]) == (429, "poll_budget")
        assert "gatehouse wait" in said["remedy"]
        assert 1 <= int(refused["Retry-After"]) == said["retry_after_s"] <= 61
    shared = agent_api.post("/slurm/shared-calls", {"program": "squeue", "arguments": [], "login": "colleague"})
    assert (shared.status_code, shared.json()["code"]) == (429, "poll_budget")


def test_events_and_other_tokens_are_not_of_it(cluster, cast: Cast, agent_api: Api) -> None:
    for _ in range(len(QUESTIONS) + 1):
        agent_api.get("/jobs")
    assert agent_api.get("/me").status_code == 200
    assert Api(factories.make_token(cast.agent)).get("/jobs").status_code == 200

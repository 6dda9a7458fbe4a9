"""What `gatehouse sacct` is told: of whom, and how sure the portal is of it."""

import io
from datetime import timedelta
from typing import Any

import pytest

from portal.core import clock
from telemetry.engine.slurm.printing import FACTS
from telemetry.engine.slurm.queue_texts import Texts
from telemetry.engine.slurm.sacct_text import SacctReader
from telemetry.models import Job, SlurmReader
from telemetry.services.reader.sheets import Sheets
from tests.conftest import Api, Cast
from tests.telemetry.logs import iso, live_row, stream_records, text
from tests.telemetry.test_slurm_api import told

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
MINE = {"User": "colleague", "Account": "okafor_lab"}
DAY_S = 86_400
WRITTEN = "%Y-%m-%dT%H:%M:%S"


def store(cast: Cast, *rows: str, source: str = "slurm_reader") -> None:
    stream_records(cast.cluster, SacctReader(io.BytesIO(text(*rows)), now_s=clock.now_s()), source=source)


def keep(cast: Cast, *rows: list[str], swept: bool = True) -> None:
    now = clock.now()
    SlurmReader.objects.update_or_create(
        cluster=cast.cluster, defaults={"swept_until": now, "deep_swept": now if swept else None}
    )
    asked_s = clock.now_s() - 2
    Sheets(cast.cluster, knows=lambda login: True).keep(Texts(rows, asked_s, asked_s))


def standing(number: int, **texts: str) -> list[str]:
    """A line of squeue that says of a job what `live_row` says."""
    job = Job.objects.get(raw_id=number)
    known = {
        "submittime": f"{job.submit:{WRITTEN}}", "jobarrayid": job.job_id, "name": job.job_name, "qos": job.qos,
        "partition": job.partition, "account": job.account.name if job.account else "", "numcpus": str(job.cpus),
        "state": job.state, "arrayjobid": str(number),
    }  # fmt: skip
    known["starttime"] = f"{job.start:{WRITTEN}}" if job.start else "N/A"
    limit = job.timelimit_s
    known["timelimit"] = "UNLIMITED" if limit is None else f"{limit // 3600}:{limit // 60 % 60:02}:{limit % 60:02}"
    return told(number, "colleague", **(known | texts))


def ask(api: Api, **query: Any) -> dict[str, Any]:
    words = "&".join(f"{name}={value}" for name, value in ({"login": "colleague"} | query).items())
    answer = api.get(f"/slurm/sacct?{words}")
    assert answer.status_code == 200, answer.content
    return answer.json() | {"by_id": {row[0]: dict(zip(FACTS, row, strict=True)) for row in answer.json()["rows"]}}


def test_an_agent_is_told_of_its_owners_jobs_alone(cast: Cast, agent_api: Api):
    store(cast, live_row(1, "COMPLETED", **MINE), live_row(2, "FAILED", User="outsider", Account="marlowe_lab"))
    keep(cast)
    said = ask(agent_api)
    assert (list(said["by_id"]), said["fields"], said["behind"]) == ([1], list(FACTS), [])
    said = ask(agent_api, jobs="1,2,3")
    assert (list(said["by_id"]), said["known"]) == ([1], [1])
    assert "outsider" not in str(said)
    answer = agent_api.get("/slurm/sacct?login=outsider")
    assert (answer.status_code, answer.json()["code"]) == (403, "no_login_name")


def test_an_id_that_was_anothers_too_is_not_known(cast: Cast, agent_api: Api):
    store(cast, live_row(1, "COMPLETED", ago_s=900, **MINE), live_row(1, "FAILED", User="outsider"))
    keep(cast)
    assert ask(agent_api, jobs="1")["known"] == []


def test_a_job_in_the_queue_that_is_not_stored_is_behind(cast: Cast, agent_api: Api):
    keep(cast, told(9, "colleague", arrayjobid="8"))
    assert ask(agent_api)["behind"] == [8, 9]
    assert ask(agent_api, jobs="8")["behind"] == [8, 9]
    assert ask(agent_api, jobs="7")["behind"] == []


@pytest.mark.parametrize(
    ("texts", "is_sure"),
    [({}, True), ({"state": "COMPLETING"}, False), ({"partition": "other"}, False), ({"name": "new"}, False),
     ({"timelimit": "9:00:00"}, False), ({"submittime": "2020-01-01T00:00:00"}, False)],
    ids=["same", "state", "partition", "name", "limit", "submit"],
)  # fmt: skip
def test_what_the_queue_says_otherwise_is_not_sure(cast: Cast, agent_api: Api, texts: dict[str, str], is_sure: bool):
    store(cast, live_row(1, "RUNNING", **MINE))
    keep(cast, standing(1, **texts))
    assert ask(agent_api)["by_id"][1]["is_sure"] is is_sure
    keep(cast)  # it left the queue, and accounting has not told of an end
    assert ask(agent_api)["by_id"][1]["is_sure"] is False


def test_time_goes_on_where_the_queue_says_so(cast: Cast, agent_api: Api):
    store(cast, live_row(1, "RUNNING", **MINE), live_row(2, "PENDING", **MINE))
    used = {"timeused": "1:00"}
    keep(cast, standing(1, **used), standing(2))
    said = ask(agent_api)["by_id"]
    assert (said[1]["runs"], said[1]["elapsed_s"]) == (True, None)
    assert (said[2]["runs"], said[2]["elapsed_s"], said[2]["start"], said[2]["end"]) == (False, 0, None, None)


def test_what_another_source_said_is_not_sure(cast: Cast, agent_api: Api):
    store(cast, live_row(1, "COMPLETED", **MINE), source="file")
    keep(cast)
    assert ask(agent_api)["by_id"][1]["is_sure"] is False


def test_a_secret_is_withheld(cast: Cast, agent_api: Api):
    store(cast, live_row(1, "COMPLETED", **MINE, JobName="ghp_" + "a1B2" * 9))
    keep(cast)
    assert ask(agent_api)["by_id"][1]["name"] is None


def test_since_when_all_is_known(cast: Cast, agent_api: Api):
    keep(cast)
    since = ask(agent_api)["since"]
    assert abs(since - (clock.now_s() - 2 * DAY_S)) < 60
    SlurmReader.objects.update(swept_until=clock.now() - timedelta(minutes=20))
    assert ask(agent_api)["since"] is None  # it is long ago that accounting was swept
    keep(cast, swept=False)
    assert ask(agent_api)["since"] is None
    keep(cast)
    store(cast, live_row(1, "COMPLETED", **MINE, Start="nonsense"))  # a record that could not be read
    assert ask(agent_api)["since"] is None


def test_an_array_is_known_where_it_began_since(cast: Cast, agent_api: Api):
    for number, ago_s in ((20, 60), (30, 3 * DAY_S)):
        store(cast, live_row(number, "COMPLETED", **MINE, JobID=f"{number}_1", Submit=iso(ago_s)))
    keep(cast)
    assert ask(agent_api, jobs="20,30")["known"] == [20]


def test_nothing_is_told_where_nobody_looks(cast: Cast, agent_api: Api):
    assert agent_api.get("/slurm/sacct?login=colleague").json()["code"] == "queue_unknown"
    keep(cast)
    SlurmReader.objects.update(shown=clock.now() - timedelta(minutes=3))
    assert agent_api.get("/slurm/sacct?login=colleague").json()["code"] == "queue_unknown"


def test_it_costs_few_questions(cast: Cast, agent_api: Api, django_assert_max_num_queries):
    store(cast, *(live_row(number, "COMPLETED", **MINE) for number in range(1, 40)))
    keep(cast)
    with django_assert_max_num_queries(16):
        assert len(ask(agent_api)["rows"]) == 39

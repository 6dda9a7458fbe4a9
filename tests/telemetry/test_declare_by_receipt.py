"""An agent declares its jobs by a receipt, whichever way they are read and whatever else is known of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies import services as policy_services
from policies.services import TrialWish
from portal.core import clock
from portal.core.models import AuditEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, ClusterUser
from principals.services import DeclaredSession
from telemetry import services
from telemetry.engine.slurm.pyslurm_jobs import read_pyslurm_jobs
from telemetry.models import Job
from telemetry.services.ingest import running
from tests import factories
from tests.conftest import Api, Cast, sign_in
from tests.policies import worlds
from tests.telemetry.engine.sacct_texts import COLUMNS, row, text
from tests.telemetry.engine.test_read_sacct_json import document, job
from tests.telemetry.logs import ingest, job_row, stream_records
from tests.telemetry.test_read_pyslurm import JOB as PYSLURM_JOB

pytestmark = [pytest.mark.django_db, pytest.mark.sql]

SUBMIT = datetime(2026, 7, 1, 10, tzinfo=UTC)  # of the rows of `job_row`
BOTH = (*COLUMNS[:9], "AdminComment", *COLUMNS[9:])


def receipt(agent: Agent, *, issued: datetime = SUBMIT - timedelta(hours=1), **fields: Any) -> str:
    """A receipt of an agent that was valid when the jobs of these tests were submitted."""
    with clock.at(issued):
        return services.request_receipt(actor=worlds.agent_actor(agent, "jobs:declare"), **fields).public_id


def declare(cast: Cast, login: str, kind: str, harness: str = "") -> None:
    session = DeclaredSession(
        login=login, host="login1", kind=kind, harness=harness, campaign="screen" if harness else "",
        started=SUBMIT - timedelta(hours=1),
    )  # fmt: skip
    services.declare_sessions(actor=SYSTEM_ACTOR, cluster=cast.cluster, sessions=[session])


def found() -> dict[int, tuple[Any, ...]]:
    return {
        job.raw_id: (
            *(job.actor, job.harness, job.actor_method, job.session_id is not None, job.campaign),
            job.agent.name if job.agent else "",
        )
        for job in Job.objects.select_related("agent").order_by("raw_id")
    }


@pytest.mark.parametrize("many_bytes", [0, 10**9], ids=["in columns", "row by row"])
@pytest.mark.parametrize("sessions_first", [True, False])
def test_a_receipt_speaks_before_all_else(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, many_bytes: int, sessions_first: bool
) -> None:
    monkeypatch.setattr(running, "MANY_BYTES", many_bytes)
    monkeypatch.setitem(running.BLOCK_ROWS, connection.vendor, 4)
    over = receipt(cast.agent, issued=SUBMIT - timedelta(days=2))
    own, foreign = receipt(cast.agent), receipt(cast.foreign_agent)
    label = "gatehouse:v1:harness=codex:marker=CODEX_CI"
    told = [
        ("colleague", own, ""), ("colleague", f"campaign=dock {own}", ""), ("colleague", "", f"x {own}"),
        ("colleague", own, label), ("colleague", over, ""), ("colleague", foreign, ""), ("colleague", "", ""),
        ("pi", own, ""), ("pi", "rcp_22222222222z", ""), ("manager", foreign, ""), ("outsider", foreign, ""),
    ]  # fmt: skip
    rows = [
        row(BOTH, JobID=str(number), JobIDRaw=str(number), User=user, Comment=comment, AdminComment=admin)
        for number, (user, comment, admin) in enumerate(told, 1)
    ]
    acts = [lambda: (declare(cast, "colleague", "agent", "claude-code"), declare(cast, "manager", "interactive")),
            lambda: ingest(cast.cluster, text(*rows, columns=BOTH))]  # fmt: skip
    for act in acts if sessions_first else acts[::-1]:
        act()
    mine, theirs = cast.agent.name, cast.foreign_agent.name
    assert found() == {
        1: ("agent", "claude-code", "receipt", True, "screen", mine),
        2: ("agent", "claude-code", "receipt", True, "dock", mine),
        3: ("agent", "claude-code", "receipt", True, "screen", mine),
        4: ("agent", "claude-code", "receipt_against_others", False, "", mine),
        5: ("agent", "claude-code", "declared_session", True, "screen", mine),
        6: ("agent", "claude-code", "receipt_foreign", True, "screen", mine),
        7: ("agent", "claude-code", "declared_session", True, "screen", mine),
        8: ("unknown", "", "receipt_foreign_alone", False, "", ""),
        9: ("unknown", "", "none", False, "", ""),
        10: ("human", "", "receipt_foreign", True, "", ""),
        11: ("agent", cast.foreign_agent.harness, "receipt", False, "", theirs),
    }


def test_json_and_pyslurm_tell_both_comments(cast: Cast) -> None:
    name = receipt(cast.agent, issued=datetime.fromtimestamp(1782900000, UTC))
    for number, place in ((1, "job"), (2, "administrator")):
        comment = {"job": "", "administrator": ""} | {place: f"a {name}"}
        body = document(job(number, user="colleague", comment=comment))
        ingest(cast.cluster, body, format="sacct-json")
    dumped = [
        PYSLURM_JOB | {"id": 3, "user_name": "colleague", "comment": name},
        PYSLURM_JOB | {"id": 4, "user_name": "colleague", "admin_comment": name},
    ]
    stream_records(cast.cluster, list(read_pyslurm_jobs(dumped, now_s=clock.now_s())))
    assert dict(Job.objects.values_list("raw_id", "actor_method")) == dict.fromkeys(range(1, 5), "receipt")


def test_a_receipt_is_of_one_cluster(cast: Cast) -> None:
    other = factories.make_cluster("boreas")
    factories.make_account(other, cast.lab)
    factories.make_cluster_user(other, cast.colleague)
    name = receipt(cast.agent, cluster_name="Boreas")
    ingest(cast.cluster, text(job_row(1, User="colleague", Comment=name)))
    ingest(other, text(job_row(2, User="colleague", Comment=name)))
    assert [each[2] for each in found().values()] == ["none", "receipt"]


def test_a_job_counts_as_an_agents_once_it_names_a_receipt(cast: Cast) -> None:
    name = receipt(cast.agent)
    ingest(cast.cluster, text(job_row(1, User="colleague")))
    assert found()[1][0] == "unknown"
    ingest(cast.cluster, text(job_row(1, User="colleague", Comment=name)))
    assert found()[1][0] == "agent"


def test_a_trials_receipt_declares_its_job_too(cast: Cast) -> None:
    with clock.at(SUBMIT - timedelta(minutes=5)):
        actor = worlds.agent_actor(cast.agent)
        grant = policy_services.request_trial(actor=actor, lab=cast.lab, wish=TrialWish(minutes=10)).grant
        assert grant is not None
        both = f"{grant.public_id} {receipt(cast.agent, issued=clock.now())}"
    with clock.at(SUBMIT + timedelta(hours=3)):
        ingest(cast.cluster, text(job_row(1, User="colleague", Account="okafor_lab", Comment=both)))
        assert policy_services.settle_trials().used == 1
    assert found()[1][1:3] == ("claude-code", "receipt")


def test_a_job_without_a_receipt_asks_for_none(cast: Cast) -> None:
    with CaptureQueriesContext(connection) as asked:
        ingest(cast.cluster, text(job_row(1, User="colleague", Comment="rcp and trl")))
    assert not [query for query in asked.captured_queries if "telemetry_jobreceipt" in query["sql"]]


# --- asking -------------------------------------------------------------------------------------------------
def test_an_agent_is_given_the_same_receipt_until_half_of_its_time_is_over(cast: Cast, agent_api: Api) -> None:
    now = clock.now().replace(microsecond=0)
    with clock.at(now):
        told = agent_api.post("/jobs/receipts").json()
        assert told["cluster"] == "aster" and told["sbatch_options"] == [f"--comment={told['receipt']}"]
        assert told["valid_until"] == (now + timedelta(hours=12)).isoformat().replace("+00:00", "Z")
        assert agent_api.post("/jobs/receipts?cluster=ASTER").json() == told
    with clock.at(now + timedelta(hours=7)):
        assert agent_api.post("/jobs/receipts").json()["receipt"] != told["receipt"]
    event = AuditEvent.objects.filter(verb="receipt.issue").first()
    assert event is not None and (event.actor_label, event.lab_id) == (cast.agent.name, cast.lab.pk)
    assert AuditEvent.objects.filter(verb="receipt.issue").count() == 2


def test_what_it_cannot_be_given_says_why(cast: Cast, agent_api: Api) -> None:
    def refused(query: str = "") -> tuple[int, str]:
        answer = agent_api.post(f"/jobs/receipts{query}")
        assert answer.json()["remedy"]
        return answer.status_code, answer.json()["code"]

    assert refused("?cluster=nowhere") == (422, "cluster_unknown")
    factories.make_account(factories.make_cluster("boreas"), cast.lab)
    assert refused() == (422, "cluster_missing")
    bare = Api(factories.make_token(cast.agent, "jobs:read"))
    assert bare.post("/jobs/receipts").json()["code"] == "scope_missing"


def test_a_receipt_opens_nothing(cast: Cast) -> None:
    name = receipt(cast.agent)
    for token in (name, f"gha_{name}"):
        assert Api(token).get("/me").status_code == 401


# --- showing ------------------------------------------------------------------------------------------------
def test_the_jobs_page_names_the_agent_that_declared_it(cast: Cast) -> None:
    name = receipt(cast.agent)
    ingest(cast.cluster, text(job_row(1, User="colleague", Account="okafor_lab", Comment=name),
                              job_row(2, User="pi", Account="okafor_lab", Comment=name)))  # fmt: skip
    pages = [sign_in(cast.pi).get(each.get_absolute_url()).content.decode() for each in Job.objects.order_by("raw_id")]
    assert "Receipt of" in pages[0] and cast.agent.name in pages[0] and "It names a receipt" in pages[0]
    assert "Receipt of" not in pages[1] and "an agent of somebody else" in pages[1]
    client, name = sign_in(cast.pi), cast.agent.name
    page = client.get(f"/agents/{name}/")
    assert (page.context["job_count"], [row.job.raw_id for row in page.context["jobs"]]) == (1, [1])
    rows = b"".join(client.get(f"/jobs/?agent={name}&format=csv").streaming_content).decode().splitlines()
    assert len(rows) == 2 and f",{name}," in rows[1]
    evidence = sign_in(cast.staff).get("/login-nodes/").content.decode()
    assert "Declared by a receipt" in evidence and "Names a receipt of somebody else; not attributed" in evidence


def test_a_login_name_that_is_nobodys_declares_nothing(cast: Cast) -> None:
    name = receipt(cast.agent)
    ClusterUser.objects.filter(user=cast.colleague).update(user=None)
    ingest(cast.cluster, text(job_row(1, User="colleague", Comment=name)))
    assert found()[1][2] == "receipt_foreign_alone"

"""Live jobs: what is live, who may see it, what the address narrows it to, and at what cost."""

import csv
import json
from typing import Any

import pytest

from portal.core import live
from principals.models import AgentSession, ClusterUser
from telemetry.models import Job
from tests import factories
from tests.conftest import Cast, sign_in
from tests.dashboard.live_rows import make_job

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def login(cast: Cast, name: str) -> ClusterUser:
    return factories.make_cluster_user(cast.cluster, getattr(cast, name))


@pytest.fixture
def jobs(cast: Cast) -> dict[str, Job]:
    """The lab's agent runs one, its people wait with one; the outsider's failed; yesterday's is over."""
    session = AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=login(cast, "colleague"), host="login1", harness="claude-code", started=1,
        agent=cast.agent,
    )  # fmt: skip
    agents = {"actor": "agent", "harness": "claude-code", "session": session}
    return {
        "running": make_job(login(cast, "colleague"), cast.lab, state="RUNNING", gpus=2, partition="gpu", **agents),
        "pending": make_job(login(cast, "pi"), cast.lab, actor="human", ago_s=7200),
        "failed": make_job(login(cast, "outsider"), cast.other_lab, state="OUT_OF_MEMORY", exit_signal=9),
        "old": make_job(login(cast, "outsider"), cast.other_lab, state="COMPLETED", ago_s=90_000),
    }


def shown(page: str) -> set[str]:
    return {part.split('"')[0].split(":")[1] for part in page.split('data-job="')[1:]}


def of(*jobs: Job) -> set[str]:
    return {str(job.raw_id) for job in jobs}


@pytest.mark.parametrize("role", ["staff", "infosec", "auditor"])
def test_who_looks_everywhere_sees_what_is_live_and_nothing_older(cast: Cast, jobs: dict[str, Job], role: str) -> None:
    page = sign_in(getattr(cast, role)).get("/jobs/live/").content.decode()
    assert shown(page) == of(jobs["running"], jobs["pending"], jobs["failed"])
    assert "all-jobs:aster" in page


@pytest.mark.parametrize(
    ("role", "names"),
    [("pi", ["running", "pending"]), ("manager", ["running", "pending"]), ("colleague", ["running"]),
     ("outsider", ["failed"])],
)  # fmt: skip
def test_others_see_their_labs_or_their_own(cast: Cast, jobs: dict[str, Job], role: str, names: list[str]) -> None:
    page = sign_in(getattr(cast, role)).get("/jobs/live/").content.decode()
    assert shown(page) == of(*(jobs[name] for name in names))
    assert "all-jobs:" not in page


def test_a_pi_hears_the_lab_and_a_member_the_own_login(cast: Cast) -> None:
    assert f"lab-jobs:{cast.lab.pk}" in sign_in(cast.pi).get("/jobs/live/").content.decode()
    page = sign_in(cast.colleague).get("/jobs/live/").content.decode()
    assert f"user-jobs:{login(cast, 'colleague').pk}" in page and "lab-jobs:" not in page


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("actor=agent", ["running"]),
        ("actor=human", ["pending"]),
        ("state=FAILED", ["failed"]),
        ("state=PENDING,RUNNING", ["running", "pending"]),
        ("partition=gpu", ["running"]),
        ("lab=marlowe", ["failed"]),
        ("harness=claude-code", ["running"]),
        ("wait=3600", ["pending"]),
        ("cluster=nowhere", []),
        ("campaign=none", []),
    ],
)
def test_the_address_narrows_it(cast: Cast, jobs: dict[str, Job], query: str, names: list[str]) -> None:
    client = sign_in(cast.staff)
    page = client.get(f"/jobs/live/?{query}").content.decode()
    assert shown(page) == of(*(jobs[name] for name in names))
    exported = client.get(f"/jobs/live/?{query}&format=json")
    rows = json.loads(b"".join(exported.streaming_content))
    assert {str(row["raw_id"]) for row in rows} == of(*(jobs[name] for name in names))


def test_a_malformed_number_is_refused_not_ignored(cast: Cast) -> None:
    response = sign_in(cast.staff).get("/jobs/live/?wait=long")
    assert response.status_code == 422 and "wait=300" in response.content.decode()


def test_counts_by_state_open_their_rows(cast: Cast, jobs: dict[str, Job]) -> None:
    response = sign_in(cast.staff).get("/jobs/live/")
    tiles = {tile["state"]: (tile["count"], tile["share"]) for tile in response.context["states"]}
    assert tiles["RUNNING"] == (1, 1.0) and tiles["PENDING"] == (1, 0.0) and tiles["FAILED"] == (1, 0.0)
    assert sign_in(cast.staff).get("/jobs/live/?state=FAILED").context["page"].paginator.count == 1


def test_rows_say_who_where_and_why(cast: Cast, jobs: dict[str, Job]) -> None:
    page = sign_in(cast.staff).get("/jobs/live/").content.decode()
    assert "okafor-docking" in page and "2 GPUs" in page and "c0001" in page
    assert "Other jobs are ahead of it" in page
    assert "Ran out of memory, ended by SIGKILL (9)" in page


def test_a_partial_request_gets_rows_and_counts_alone(cast: Cast, jobs: dict[str, Job]) -> None:
    headers = {"HX-Request": "true", "HX-Target": "live-results"}
    page = sign_in(cast.staff).get("/jobs/live/", headers=headers).content.decode()
    assert shown(page) == of(jobs["running"], jobs["pending"], jobs["failed"])
    assert "hx-swap-oob" in page and "<html" not in page


def test_hostile_names_stay_text(cast: Cast) -> None:
    user = login(cast, "pi")
    words = dict.fromkeys(("job_name", "node_list", "campaign", "submit_line", "work_dir"), HOSTILE)
    job = make_job(user, cast.lab, state="FAILED", partition=HOSTILE[:60], extra={HOSTILE: HOSTILE}, **words)
    client = sign_in(cast.pi)
    for path in ("/jobs/live/", "/jobs/", f"/jobs/{job.pk}/", f"/search/?q={job.raw_id}"):
        page = client.get(path).content.decode()
        assert str(job.raw_id) in page
        assert "<script>alert" not in page and "<img src=x" not in page


def test_a_formula_in_a_job_name_is_disarmed_in_the_export(cast: Cast) -> None:
    make_job(login(cast, "pi"), cast.lab, job_name="=cmd|' /C calc'!A0")
    response = sign_in(cast.pi).get("/jobs/live/?format=csv")
    rows = list(csv.DictReader(b"".join(response.streaming_content).decode().splitlines()))
    assert rows[0]["job_name"].startswith("'=")


def test_the_ticker_holds_what_was_told_and_only_to_those_who_hear_it(cast: Cast) -> None:
    payload = {"cluster": "aster", "raw_id": 7, "job_id": "7", "text": "started on 1 node", "user": "colleague"}
    live.announce(
        [live.News(name="job.started", topics=(f"lab-jobs:{cast.lab.pk}", "all-jobs:aster"), payload=payload)]
    )
    live.number_committed()
    for role, heard in (("staff", True), ("pi", True), ("outsider", False), ("colleague", False)):
        page = sign_in(getattr(cast, role)).get("/jobs/live/").content.decode()
        assert ("started on 1 node" in page) is heard
        assert ('href="/jobs/aster/7/"' in page) is heard


def test_events_that_wait_for_their_number_are_known_to_the_page(cast: Cast) -> None:
    news = live.News(name="job.started", topics=("all-jobs:aster",), payload={"cluster": "aster", "raw_id": 7})
    live.announce([news])
    live.number_committed()
    live.announce([news, news])
    page = sign_in(cast.staff).get("/jobs/live/").content.decode()
    assert 'data-cursor="1" data-known="3"' in page


def test_an_empty_page_says_what_to_do(cast: Cast, jobs: dict[str, Job]) -> None:
    client = sign_in(cast.staff)
    assert "Nothing matches these filters" in client.get("/jobs/live/?state=TIMEOUT").content.decode()
    Job.objects.all().delete()
    assert "No job is live" in client.get("/jobs/live/").content.decode()


def _queries(client: Any, path: str, django_assert_max_num_queries: Any) -> int:
    with django_assert_max_num_queries(40) as asked:
        client.get(path)
    return len(asked)


@pytest.mark.parametrize("path", ["/jobs/live/", "/jobs/"])
def test_sixty_jobs_cost_as_many_queries_as_five(cast: Cast, path: str, django_assert_max_num_queries: Any) -> None:
    user = login(cast, "pi")
    client = sign_in(cast.staff)
    for _ in range(5):
        make_job(user, cast.lab, state="RUNNING")
    client.get(path)  # what is remembered for a minute is remembered now
    few = _queries(client, path, django_assert_max_num_queries)
    for number in range(55):
        other = ClusterUser.objects.create(cluster=cast.cluster, login=f"u{number}")
        make_job(other, factories.make_lab(), state="RUNNING")
    assert _queries(client, path, django_assert_max_num_queries) == few


def test_what_is_live_is_found_by_index_not_by_walking_the_log(cast: Cast) -> None:
    from django.db import connection

    from telemetry import selectors
    from telemetry.selectors import JobFilter

    if connection.vendor != "sqlite":
        pytest.skip("the plan of PostgreSQL follows its statistics")
    plan = selectors.live_jobs(factories.actor_of(cast.staff), JobFilter()).order_by().explain()
    assert "telemetry_job_active" in plan and "telemetry_job_cluster_end" in plan
    assert "telemetry_job_changed" not in plan and "SCAN telemetry_job" not in plan

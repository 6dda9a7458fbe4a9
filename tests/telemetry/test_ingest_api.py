"""What site automation sends over the API."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from portal.core import clock
from portal.core.models import IdempotencyKey
from principals.engine.harnesses import known_harnesses
from principals.models import Agent, Cluster
from telemetry import services, tasks
from telemetry.models import IngestBatch, Job
from telemetry.services.ingest.mistyped import ATTEMPTS_KEPT
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.logs import job_row, many, text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    hints: list[int] = []
    monkeypatch.setattr(tasks.run_ingest_batch, "delay", hints.append)
    return hints


def post(api: Api, body: bytes, cluster: str = "aster", format: str = "sacct", **headers: str):
    address = f"/api/v1/ingest/jobs?cluster={cluster}&format={format}"
    return api.client.post(address, body, content_type="text/plain", headers=headers)


def test_it_works(service_api: Api, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answer = post(service_api, text(job_row(1), job_row(2, State="WHAT")))
    assert answer.status_code == 202
    batch = answer.json()
    assert (batch["state"], batch["rows"], len(sent)) == ("queued", 0, 1)
    services.run_batch(sent[0])
    batch = service_api.get(f"/ingest/batches/{batch['id']}").json()
    assert (batch["state"], batch["created_rows"], batch["rejected_rows"]) == ("done", 1, 1)
    assert batch["bytes_done"] == batch["bytes_total"] and batch["reasons"] == {"unknown_state": 1}
    page = service_api.get(f"/ingest/batches/{batch['id']}/quarantine", limit=1).json()
    assert page["items"][0]["reason"] == "unknown_state" and page["next"] is None


def test_the_quarantine_is_read_in_pages(service_api: Api):
    batch_id = post(service_api, text(*(job_row(number, State="WHAT") for number in range(1, 6)))).json()["id"]
    services.run_batch(IngestBatch.objects.get().pk)
    lines, after = [], 0
    while after is not None:
        page = service_api.get(f"/ingest/batches/{batch_id}/quarantine", limit=2, after=after).json()
        lines += [row["line"] for row in page["items"]]
        after = page["next"]
    assert lines == [2, 3, 4, 5, 6]


def test_a_repeated_body_gives_the_same_batch(service_api: Api):
    first = post(service_api, many(3)).json()["id"]
    services.run_batch(IngestBatch.objects.get().pk)
    again = post(service_api, many(3)).json()
    assert (again["id"], again["state"], Job.objects.count()) == (first, "done", 3)


def test_an_idempotency_key_replays_the_first_answer(service_api: Api):
    first = post(service_api, many(3), **{"Idempotency-Key": "k1"})
    again = post(service_api, many(3), **{"Idempotency-Key": "k1"})
    assert again.json() == first.json() and again["Idempotency-Replayed"] == "true"
    assert IdempotencyKey.objects.get().status == 202
    other = post(service_api, many(3), cluster="boreas", **{"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("body", "query", "code"),
    [
        (b"", {}, "body_empty"),
        (b" \n ", {}, "body_empty"),
        (b"\x7fELF\0\0", {}, "not_text"),
        (many(1), {"format": "csv"}, "format_unknown"),
        (many(1), {"cluster": "two%20words"}, "cluster_name_invalid"),
    ],
)
def test_an_obviously_wrong_upload_is_refused_at_once(service_api: Api, body: bytes, query: dict, code: str):
    answer = post(service_api, body, **query)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer.json()["remedy"]
    assert not IngestBatch.objects.exists()


def test_a_wrong_form_is_shown_by_the_batch(service_api: Api):
    answer = post(service_api, b"JobID|User\n1|ada\n")
    assert answer.status_code == 202
    services.run_batch(IngestBatch.objects.get().pk)
    batch = service_api.get(f"/ingest/batches/{answer.json()['id']}").json()
    assert batch["state"] == "failed" and "missing" in batch["error"]


@override_settings(INGEST_MAX_BYTES=100, DATA_UPLOAD_MAX_MEMORY_SIZE=100)
def test_a_body_over_the_limit_is_too_large(service_api: Api):
    answer = post(service_api, many(5))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_bound_service_sends_for_its_cluster_only(cast: Cast):
    factories.make_cluster("boreas")
    api = Api(factories.make_service_token(cluster=cast.cluster))
    assert post(api, many(1)).status_code == 202
    other = post(api, many(1), cluster="boreas")
    assert (other.status_code, other.json()["code"]) == (403, "cluster_not_allowed")
    unknown = post(api, many(1), cluster="nowhere")
    assert (unknown.status_code, unknown.json()["code"]) == (422, "cluster_unknown")
    sessions = api.post("/ingest/sessions", {"cluster": "boreas", "sessions": [a_session()]})
    assert (sessions.status_code, sessions.json()["code"]) == (403, "cluster_not_allowed")


def test_a_bound_service_may_write_its_cluster_in_any_case(cast: Cast):
    api = Api(factories.make_service_token(cluster=cast.cluster))
    assert post(api, many(1), cluster="ASTER").status_code == 202
    assert api.post("/ingest/sessions", {"cluster": "Aster", "sessions": [a_session()]}).status_code == 200
    assert IngestBatch.objects.get().cluster == cast.cluster
    kelvin = post(api, many(1), cluster="\u212aepler")
    assert (kelvin.status_code, kelvin.json()["code"]) == (422, "cluster_name_invalid")


def test_it_validates_scope_and_token(cast: Cast, agent_api: Api):
    assert post(Api(factories.make_service_token("ingest:findings")), many(1)).status_code == 403
    assert post(agent_api, many(1)).status_code == 403
    assert post(Api(""), many(1)).status_code == 401


def test_a_service_sees_only_the_batches_it_sent(service_api: Api):
    batch_id = post(service_api, many(1)).json()["id"]
    other = Api(factories.make_service_token())
    assert other.get(f"/ingest/batches/{batch_id}").status_code == 404
    assert other.get(f"/ingest/batches/{uuid.uuid4()}/quarantine").json()["code"] == "batch_unknown"


def test_a_batch_of_a_person_is_not_one_of_a_service_of_that_name(cast: Cast):
    person = factories.actor_of(factories.make_user("reader", is_research_computing=True))
    theirs = services.accept_upload(actor=person, cluster_name="aster", body=many(1), format="sacct")
    api = Api(factories.make_service_token(name="reader"))
    assert api.get(f"/ingest/batches/{theirs.public_id}").status_code == 404
    assert post(api, many(1)).json()["id"] != str(theirs.public_id)


def a_session(**fields: object) -> dict[str, object]:
    return {
        "host": "login1", "user": "ada", "harness": "claude-code", "start": "2026-07-01T09:00:00Z",
        "end": "2026-07-01T11:00:00Z", **fields,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("sessions", {"sessions": [{"host": "login1", "user": "ada", "harness": "codex",
                                    "start": "2026-07-01T09:00:00Z", "end": "2026-07-01T08:00:00Z"}]}),
        ("gpu-utilisation", {"rows": [{"job": 7, "gpu": "g1:0", "compute_percent": 120, "memory_percent": 10,
                                       "measured": "2026-07-01T03:00:00Z"}]}),
    ],
)  # fmt: skip
def test_a_mistyped_cluster_of_which_nothing_is_stored_does_not_stay(service_api: Api, kind: str, rows: dict):
    answer = service_api.post(f"/ingest/{kind}", {"cluster": "astre"} | rows)
    assert answer.json()["results"][0]["outcome"] == "rejected"
    assert not Cluster.objects.filter(name="astre").exists()


def test_a_mistyped_cluster_goes_a_week_after_the_upload_that_failed(service_api: Api, time_machine: Any):
    assert post(service_api, b" ", cluster="astre").status_code == 422
    assert not Cluster.objects.filter(name="astre").exists()
    address = f"/ingest/batches/{post(service_api, b'nothing of ours', cluster='astre').json()['id']}"
    post(service_api, many(1))
    for batch in IngestBatch.objects.all():
        services.run_batch(batch.pk)
    services.prune()
    assert service_api.get(address).json()["state"] == "failed"
    time_machine.move_to(clock.now() + ATTEMPTS_KEPT + timedelta(minutes=1))
    assert services.prune()["clusters"] == 1
    assert list(Cluster.objects.values_list("name", flat=True)) == ["aster"]


def test_sessions_get_an_outcome_each(service_api: Api):
    post(service_api, text(job_row(1)))
    services.run_batch(IngestBatch.objects.get().pk)
    sent = [a_session(campaign="dock"), a_session(end="2026-07-01T08:00:00Z"), a_session(harness=None)]
    answer = service_api.post("/ingest/sessions", {"cluster": "aster", "sessions": sent})
    assert answer.status_code == 200, answer.content
    results = [(each["outcome"], each["reason"]) for each in answer.json()["results"]]
    assert results == [("created", "login_unclaimed"), ("rejected", "end_before_start"), ("created", "")]
    assert answer.json()["jobs_changed"] == 1
    job = Job.objects.get()
    assert (job.actor, job.actor_method, job.campaign) == ("agent", "declared_session_with_interactive", "dock")


def test_a_session_of_a_harness_is_told_its_agent_or_why_it_has_none(cast: Cast, service_api: Api):
    sessions = [
        a_session(user="colleague"), a_session(user="pi"), a_session(user="nobody-here"),
        a_session(user="colleague", harness=None),
    ]  # fmt: skip

    def told() -> list[tuple[str | None, str]]:
        answer = service_api.post("/ingest/sessions", {"cluster": "aster", "sessions": sessions}).json()
        assert [bool(each["remedy"]) for each in answer["results"]] == [
            bool(each["reason"]) for each in answer["results"]
        ]
        return [(each["agent"], each["reason"]) for each in answer["results"]]

    assert told() == [(cast.agent.name, ""), (None, "no_agent"), (None, "login_unclaimed"), (None, "")]
    factories.make_agent(cast.lab, cast.pi, "okafor-late")
    assert told() == [(cast.agent.name, ""), (None, "declared_before"), (None, "login_unclaimed"), (None, "")]
    second = factories.make_agent(cast.lab, cast.colleague, "okafor-second")
    sessions = [a_session(user="colleague", start="2026-07-01T10:00:00Z")]
    assert told() == [(None, "several_agents")]
    Agent.objects.filter(pk__in=(second.pk, cast.agent.pk)).update(hosts=["login9"])
    sessions = [a_session(user="colleague", start="2026-07-01T10:30:00Z")]
    assert told() == [(None, "host_not_allowed")]


def test_an_unknown_harness_is_rejected_with_those_that_are_known(service_api: Api):
    body = {"cluster": "aster", "sessions": [a_session(harness="nosuch"), a_session()]}
    rejected, taken = service_api.post("/ingest/sessions", body).json()["results"]
    assert (rejected["outcome"], rejected["reason"], taken["outcome"]) == ("rejected", "unknown_harness", "created")
    assert all(slug in rejected["remedy"] for slug in known_harnesses())


@pytest.mark.parametrize(
    "body",
    [
        {"cluster": "aster", "sessions": []},
        {"cluster": "aster", "sessions": [a_session()] * 1001},
        {"cluster": "aster", "sessions": [a_session(start="2026-07-01T09:00:00")]},
        {"cluster": "aster", "sessions": [a_session(kind="robot")]},
        {"sessions": [a_session()]},
    ],
)
def test_sessions_of_another_form_are_refused(service_api: Api, body: dict):
    answer = service_api.post("/ingest/sessions", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")

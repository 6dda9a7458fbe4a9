"""Collectors send signed batches; one that was altered, cut or signed by another is refused."""

from uuid import uuid4

import pytest

from portal.core.models import IdempotencyKey
from principals.models import AgentSession, Cluster
from telemetry.models import ActivityMinute, CollectorReport
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.activity_batches import agent_session, batch, counted, post, shell_session

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("standing_clock")]


def test_it_works(cast: Cast, service_api: Api):
    sent = batch(sessions=[agent_session(), shell_session()], minutes=[counted(), counted("", "human")])
    answer = post(service_api, sent)
    assert answer.status_code == 200
    assert answer.json()["accepted"] == {
        "sessions": 1,
        "minutes": 2,
        "submissions": 0,
        "polling": 0,
        "loops": 0,
        "ssh": 0,
    }
    (refused,) = answer.json()["rejected"]
    assert (refused["part"], refused["index"], refused["reason"]) == ("sessions", 1, "no_study")
    assert "baseline_study" in refused["remedy"]
    assert AgentSession.objects.get().agent == cast.agent


def test_a_repeated_batch_gets_the_kept_answer_and_after_that_the_same_one(cast: Cast, service_api: Api):
    sent = batch(sessions=[agent_session()], minutes=[counted(), counted(driver="unknown")])
    first = post(service_api, sent)
    again = post(service_api, sent)
    assert again.headers["Idempotency-Replayed"] == "true" and again.content == first.content
    IdempotencyKey.objects.all().delete()
    assert post(service_api, sent).json() == first.json()
    assert (ActivityMinute.objects.count(), CollectorReport.objects.count()) == (1, 1)


@pytest.mark.parametrize("case", ["altered", "another token", "unsigned"])
def test_a_body_that_is_not_the_signed_one_is_refused_for_good(cast: Cast, service_api: Api, case: str):
    sent = batch(sessions=[agent_session()])
    if case == "altered":
        answer = post(service_api, sent, signed_as=b"{}")
    elif case == "another token":
        answer = post(service_api, sent, token=factories.make_service_token())
    else:
        answer = service_api.post("/ingest/activity", sent, headers={"idempotency-key": sent["batch"]})
    assert (answer.status_code, answer.json()["code"]) == (422, "signature_invalid")
    assert answer.json()["remedy"]
    assert not AgentSession.objects.exists()
    assert post(service_api, sent).status_code == 200, "no answer is kept of what was not signed"


def test_a_token_needs_the_scope_and_its_own_cluster(cast: Cast):
    without = Api(factories.make_service_token("ingest:sessions"))
    assert post(without, batch()).json()["code"] == "scope_missing"
    bound = Api(factories.make_service_token(cluster=factories.make_cluster("birch")))
    assert post(bound, batch()).json()["code"] == "cluster_not_allowed"
    assert post(bound, batch(cluster="birch")).status_code == 200


def test_a_batch_that_makes_no_sense_leaves_no_new_cluster(service_api: Api):
    assert post(service_api, batch(cluster="nowhere", host="two words")).status_code == 422
    assert not Cluster.objects.named("nowhere").exists()


def test_a_batch_of_more_than_a_megabyte_is_too_large(cast: Cast, service_api: Api):
    minutes = [counted("", "unknown") for _ in range(12_000)]
    answer = post(service_api, batch(minutes=minutes))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    "fields",
    [{"run": "1"}, {"mode": "guess"}, {"boot": "a\n"}, {"study": "A b"}, {"health": {}}, {"minutes": [{"session": 1}]},
     {"from": "2026-01-01T00:00:00"}],
)  # fmt: skip
def test_a_body_of_another_form_is_refused_whole(cast: Cast, service_api: Api, fields: dict[str, object]):
    answer = post(service_api, batch(batch=str(uuid4()), **fields))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_a_fault_is_told_by_its_place_in_the_body(service_api: Api):
    (error,) = post(service_api, batch(sessions=[agent_session(start=651)])).json()["errors"]
    assert error["where"] == "body.sessions.0.start" and "ISO 8601" in error["message"]

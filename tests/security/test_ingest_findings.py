"""`POST /api/v1/ingest/findings`: an outcome for each, one answer for a retry, a code for every refusal."""

import json
from typing import Any

import pytest

from principals.models import ServiceAccount
from security.models import Finding, Incident
from tests import factories
from tests.conftest import Api, Cast
from tests.security.support import TOKEN

pytestmark = pytest.mark.sql


def body(*findings: dict[str, Any], cluster: str = "aster") -> dict[str, Any]:
    base = {"kind": "exposed_secret", "detector": "github-token", "occurred": "2026-07-01T10:04:00Z", "host": "login03"}
    return {"cluster": cluster, "findings": [base | each for each in findings]}


def send(api: Api, said: object, **headers: str):  # type: ignore[no-untyped-def]
    return api.post("/ingest/findings", json.dumps(said), headers=headers or None)


def test_each_finding_gets_its_outcome_in_order(cast: Cast, service_api: Api) -> None:
    said = body({"login": "colleague"}, {"login": "colleague", "surface": "moon"}, {"login": "colleague"})
    answer = send(service_api, said)
    assert answer.status_code == 200
    found = answer.json()
    assert [each["outcome"] for each in found["outcomes"]] == ["opened", "rejected", "duplicate"]
    assert found["outcomes"][1]["code"] == "surface_unknown"
    assert found["counts"] == {"opened": 1, "rejected": 1, "duplicate": 1}
    assert found["outcomes"][0]["incident"] == Incident.objects.get().number
    assert Finding.objects.get().source.startswith("collector-")


def test_a_retry_with_its_key_gets_the_first_answer(cast: Cast, service_api: Api) -> None:
    said = body({"login": "colleague", "evidence": f"token {TOKEN}"})
    first = send(service_api, said, idempotency_key="k1")
    again = send(service_api, said, idempotency_key="k1")
    assert first.json() == again.json()
    assert again.json()["counts"] == {"opened": 1}
    other = send(service_api, body({"login": "manager"}), idempotency_key="k1")
    assert other.status_code == 422
    assert TOKEN not in first.content.decode()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({}, "invalid"),
        ([], "invalid"),
        ({"cluster": "aster", "findings": []}, "invalid"),
        ({"cluster": "aster", "findings": [{"kind": "other"}]}, "invalid"),
        (body({"occurred": "yesterday"}), "invalid"),
        (body({"evidence": ["x"]}), "invalid"),
        (body({"evidence": "x" * 20_001}), "invalid"),
        (body({"password": "hunter2"}), "invalid"),
        (body(*[{}] * 501), "invalid"),
        (body({}, cluster="nowhere"), "cluster_unknown"),
        (body({}, cluster="\x00\ud800"), "invalid"),
    ],
)
def test_bad_input_is_422_with_a_code_and_stores_nothing(cast: Cast, service_api: Api, said: object, code: str) -> None:
    answer = send(service_api, said)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert not Finding.objects.exists()


def test_a_scope_and_a_cluster_bind_the_token(cast: Cast, agent_api: Api) -> None:
    assert send(agent_api, body({})).status_code == 403
    other_scope = send(Api(factories.make_service_token("ingest:jobs")), body({}))
    assert (other_scope.status_code, other_scope.json()["code"]) == (403, "scope_missing")
    elsewhere = factories.make_service_token(cluster=factories.make_cluster("birch"))
    assert send(Api(elsewhere), body({})).status_code == 403
    here = factories.make_service_token(cluster=cast.cluster)
    assert send(Api(here), body({})).status_code == 200
    assert ServiceAccount.objects.count() == 3

"""OTLP/HTTP as exporters use it: forms, bounds, who may, and what is answered."""

import gzip
import json

import pytest
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from portal.core import clock
from principals.models import Agent
from telemetry import services
from telemetry.engine.otel import wire
from telemetry.models import HarnessDay, HarnessReading
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.otlp import PROTOBUF, ago, counter, logs, metrics, point, send

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
COST = "claude_code.cost.usage"


@pytest.fixture(autouse=True)
def _site_takes_it(settings) -> None:
    settings.OTLP = "on"


def costs():
    return metrics(counter(COST, [point(0.25, ago(5)), point(0.5, ago(4))]))


def counted() -> dict[str, int]:
    services.refresh_harness_days()
    (day,) = HarnessDay.objects.all()
    return day.counts


def test_protobuf_is_answered_in_protobuf(agent_api: Api):
    answer = send(agent_api, "metrics", costs())
    assert (answer.status_code, answer["Content-Type"]) == (200, PROTOBUF)
    assert ExportMetricsServiceResponse.FromString(answer.content) == ExportMetricsServiceResponse()
    assert counted() == {"cost": 750_000}


def test_json_is_answered_in_json(agent_api: Api):
    body = json_format.MessageToJson(costs()).encode()
    answer = send(agent_api, "metrics", body, kind="application/json; charset=utf-8")
    assert (answer.status_code, answer["Content-Type"], answer.json()) == (200, "application/json", {})
    assert counted() == {"cost": 750_000}


def test_a_body_may_be_packed(agent_api: Api):
    event = {"name": "api_request", "cost_usd": 0.5, "input_tokens": 3}
    assert send(agent_api, "logs", logs(event), packed=True).status_code == 200
    assert counted() == {"cost": 500_000, "requests": 1, "tokens:input": 3}


def test_prompts_are_counted_and_the_answer_says_how_to_stop_them(agent_api: Api):
    told = logs({"name": "user_prompt", "prompt": "fold it"}, {"name": "api_request", "cost_usd": 1})
    said = ExportLogsServiceResponse.FromString(send(agent_api, "logs", told).content).partial_success
    assert said.rejected_log_records == 1
    assert "1 held prompts" in said.error_message
    assert "OTEL_LOG_USER_PROMPTS" in said.error_message
    assert counted() == {"cost": 1_000_000, "requests": 1}


def test_what_is_refused_is_counted_by_reason(agent_api: Api):
    told = metrics(counter(COST, [point(-1.0, ago(5)), point(1.0, ago(60 * 24 * 60)), point(1.0, ago(-60))]))
    said = ExportMetricsServiceResponse.FromString(send(agent_api, "metrics", told).content).partial_success
    assert said.rejected_data_points == 3
    assert [words in said.error_message for words in ("no number", "older", "future")] == [True] * 3


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status", "code"),
    [
        (b"\xff\xff", PROTOBUF, {}, 400, "otlp_malformed"),
        (b"{", "application/json", {}, 400, "otlp_malformed"),
        (b"x", "text/plain", {}, 415, "unsupported_media_type"),
        (b"x", PROTOBUF, {"content-encoding": "br"}, 415, "unsupported_media_type"),
        (b"x", PROTOBUF, {"content-encoding": "gzip"}, 400, "otlp_malformed"),
        (gzip.compress(bytes(wire.MOST_UNPACKED + 1)), PROTOBUF, {"content-encoding": "gzip"}, 413, "too_large"),
        (bytes(wire.MOST_PACKED + 1), PROTOBUF, {}, 413, "too_large"),
    ],
)
def test_a_body_that_will_not_do_is_refused_in_its_form(agent_api: Api, body, kind, headers, status, code):
    answer = send(agent_api, "logs", body, kind=kind, **headers)
    assert answer.status_code == status
    if kind == PROTOBUF:
        assert answer["Content-Type"] == PROTOBUF
        assert code in Status.FromString(answer.content).message
    else:
        assert answer.json()["code"] == code
        assert answer.json()["remedy"]
    assert not HarnessReading.objects.exists()


def test_too_many_points_are_refused(agent_api: Api, monkeypatch):
    monkeypatch.setattr(wire, "MOST_TOLD", 1)
    assert send(agent_api, "metrics", costs()).status_code == 413


EMPTY = wire.MOST_TOLD + 1


@pytest.mark.parametrize(
    ("signal", "body", "kind"),
    [
        ("metrics", b"\x0a\0" * EMPTY, PROTOBUF),
        ("metrics", metrics(*[counter("x", [])] * EMPTY).SerializeToString(), PROTOBUF),
        ("logs", b"\x0a\0" * EMPTY, PROTOBUF),
        ("metrics", b'{"resourceMetrics":[' + b"{}," * wire.MOST_OBJECTS + b"{}]}", "application/json"),
        ("logs", b'{"x":[' + b"[]," * wire.MOST_OBJECTS + b"[]]}", "application/json"),
    ],
)
def test_nothing_much_of_empty_parts_is_looked_at(agent_api: Api, signal, body, kind):
    """They pack to a thousandth, and would take a core for many seconds."""
    assert send(agent_api, signal, body, kind=kind, packed=True).status_code == 413


def test_traces_are_refused_clearly(agent_api: Api):
    answer = send(agent_api, "traces", b"spans")
    assert answer.status_code == 403
    assert "OTEL_TRACES_EXPORTER" in Status.FromString(answer.content).message
    assert agent_api.post("/otlp/v1/traces", "{}").json()["code"] == "traces_not_taken"


def test_it_needs_the_scope(cast: Cast):
    answer = send(Api(factories.make_token(cast.agent, "jobs:read")), "metrics", costs())
    assert answer.status_code == 403
    assert "scope_missing" in Status.FromString(answer.content).message
    assert send(Api(""), "metrics", costs()).status_code == 401
    assert not HarnessReading.objects.exists()


def test_site_automation_cannot_have_it():
    with pytest.raises(Exception, match="telemetry:write"):
        factories.make_service_token("telemetry:write")


def test_a_flood_is_told_to_wait(agent_api: Api, monkeypatch, standing_clock):
    monkeypatch.setattr("principals.auth.REQUESTS_PER_MINUTE", 1)
    send(agent_api, "metrics", costs())
    answer = send(agent_api, "metrics", costs())
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0
    assert "requests" in Status.FromString(answer.content).message


def test_a_harness_of_which_nothing_is_known_is_told_so(cast: Cast, agent_api: Api):
    Agent.objects.filter(pk=cast.agent.pk).update(harness="aider")
    answer = send(agent_api, "metrics", costs())
    assert answer.status_code == 403
    assert "harness_emits_nothing_known" in Status.FromString(answer.content).message


def test_new_tokens_may_tell(agent_api: Api):
    assert "telemetry:write" in factories.token_row(agent_api.token).scopes


def test_a_refusal_in_json_is_a_problem(cast: Cast, settings):
    settings.OTLP = "off"
    answer = Api(factories.make_token(cast.agent)).post("/otlp/v1/logs", json.dumps({}))
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "otlp_off"


def test_an_agent_reads_its_own_days_and_no_others(cast: Cast, agent_api: Api):
    send(agent_api, "metrics", costs())
    asked = {"name": "tool_decision", "tool_name": "Bash", "decision": "reject"}
    send(agent_api, "logs", logs(asked, {"name": "api_request", "output_tokens": 7}))
    services.refresh_harness_days()
    days = agent_api.get("/otlp/days").json()["items"]
    assert sum(day["cost_usd"] for day in days) == 0.75
    assert (sum(day["rejected"] for day in days), days[-1]["tokens"]) == (1, {"output": 7})
    assert Api(factories.make_token(cast.foreign_agent)).get("/otlp/days").json() == {"items": []}


def test_a_flood_of_points_is_told_to_wait_and_not_stored(agent_api: Api, monkeypatch, standing_clock):
    """Each is a row's worth: what one token may send in a minute would fill a disk in a day."""
    monkeypatch.setattr("telemetry.api.otlp.AN_HOUR", 3)
    assert send(agent_api, "metrics", costs()).status_code == 200
    answer = send(agent_api, "metrics", costs())
    assert (answer.status_code, "points" in Status.FromString(answer.content).message) == (429, True)
    assert int(answer["Retry-After"]) == 3600 - int(clock.now().timestamp()) % 3600  # the hour ends then

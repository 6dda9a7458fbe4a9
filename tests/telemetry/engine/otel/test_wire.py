"""Bodies: unpacked within bounds, and never quoted."""

import gzip

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from telemetry.engine.otel import wire
from telemetry.engine.otel.wire import Form
from tests.telemetry.otlp import logs


def test_gzip_is_unpacked_and_a_bomb_is_not():
    assert wire.unpack(gzip.compress(b"told"), "gzip") == b"told"
    assert wire.unpack(b"told", "") == b"told"
    with pytest.raises(wire.TooBig):
        wire.unpack(gzip.compress(bytes(wire.MOST_UNPACKED + 1)), "gzip")
    with pytest.raises(wire.TooBig):
        wire.unpack(bytes(wire.MOST_PACKED + 1), "")


TOLD = gzip.compress(b"told", mtime=0)  # no time in it: workers compare the names of tests


@pytest.mark.parametrize("body", [b"no gzip", TOLD[:-5], TOLD + b"more", b"", TOLD[:4]])
def test_what_is_no_whole_gzip_is_unreadable(body: bytes):
    with pytest.raises(wire.Unreadable):
        wire.unpack(body, "gzip")


@pytest.mark.parametrize("form", list(Form))
def test_both_forms_say_the_same(form: Form):
    sent = logs({"name": "api_request", "cost_usd": 0.5}, at=1)
    body = sent.SerializeToString() if form is Form.PROTOBUF else json_format.MessageToJson(sent).encode()
    assert wire.parse(body, form, ExportLogsServiceRequest()) == sent


@pytest.mark.parametrize(
    ("form", "body"),
    [
        (Form.PROTOBUF, b"\xff\xff needle"),
        (Form.JSON, b"{needle"),
        (Form.JSON, b"\xff"),
        (Form.JSON, b"[]"),
        (Form.JSON, b"null"),
        (Form.JSON, b'{"resourceLogs": "needle"}'),
        (Form.JSON, b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "needle"}]}]}]}'),
        (Form.JSON, b'{"resourceLogs":' * 500),
        (Form.JSON, b"[" * 100_000),
    ],
)
def test_what_is_no_message_is_unreadable_and_not_quoted(form: Form, body: bytes):
    with pytest.raises(wire.Unreadable) as refused:
        wire.parse(body, form, ExportLogsServiceRequest())
    assert "needle" not in repr(refused.value)
    assert refused.value.__cause__ is None


def test_fields_of_a_later_version_are_passed_over():
    wire.parse(b'{"resourceLogs": [{"madeUp": 1}], "other": {}}', Form.JSON, ExportLogsServiceRequest())


def test_an_answer_is_empty_where_there_is_nothing_to_say():
    assert wire.write(wire.answer_logs(0, ""), Form.PROTOBUF) == b""
    assert wire.write(wire.answer_metrics(0, ""), Form.JSON) == b"{}"
    told = b'{"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "why"}}'
    assert wire.write(wire.answer_metrics(2, "why"), Form.JSON) == told

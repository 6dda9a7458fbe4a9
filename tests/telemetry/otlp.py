"""Bodies of OTLP as harnesses send them: small, and with everything a test cares about passed by itself."""

import gzip
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.test import Client
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

from portal.core import clock
from tests.conftest import Api

DELTA, CUMULATIVE = 1, 2
PROTOBUF = "application/x-protobuf"
SESSION = "6f1c1f0e-2222-4a2b-9c55-0d6a1e0f3b11"
STARTED = timedelta(minutes=30)


def ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 10**9


def ago(minutes: float) -> int:
    """The instant so many minutes ago, as OTLP writes it."""
    return ns(clock.now() - timedelta(minutes=minutes))


def pairs(attributes: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Any) -> AnyValue:
    if isinstance(value, AnyValue):
        return value
    kind = {bool: "bool_value", int: "int_value", float: "double_value"}.get(type(value), "string_value")
    return AnyValue(**{kind: value})


def point(value: float, at: int, start: int = 0, **attributes: Any) -> NumberDataPoint:
    """A point of a series; `type_` stands for the attribute `type`."""
    named = {"session.id": SESSION} | {name.rstrip("_"): said for name, said in attributes.items()}
    number = {"as_int": value} if isinstance(value, int) else {"as_double": value}
    return NumberDataPoint(
        time_unix_nano=at, start_time_unix_nano=start, attributes=pairs(named), **number
    )  # fmt: skip


def counter(name: str, points: Iterable[NumberDataPoint], temporality: int = DELTA) -> Metric:
    metric = Metric(name=name)
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = temporality
    metric.sum.data_points.extend(points)
    return metric


def metrics(*found: Metric, **resource: Any) -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    told = request.resource_metrics.add()
    told.resource.attributes.extend(pairs({"service.name": "claude-code"} | resource))
    scope = told.scope_metrics.add()
    scope.scope.name = "com.anthropic.claude_code"
    scope.metrics.extend(found)
    return request


def logs(*events: dict[str, Any], at: int = 0, prefix: str = "claude_code.") -> ExportLogsServiceRequest:
    """Events a second apart; `name` of each is its `event.name`."""
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for number, event in enumerate(events):
        told = {"event.name" if name == "name" else name: value for name, value in event.items()}
        record = scope.log_records.add(time_unix_nano=(at or ago(5)) + number * 10**9)
        record.attributes.extend(pairs({"session.id": SESSION, "event.sequence": number} | told))
        record.body.string_value = prefix + str(event.get("name", ""))
    return request


def send(api: Api, signal: str, request: Any, *, packed: bool = False, kind: str = PROTOBUF, **headers: str) -> Any:
    """Send a message, or a body as it is, as an exporter does."""
    body = request if isinstance(request, bytes) else request.SerializeToString()
    if packed:
        body, headers = gzip.compress(body), headers | {"content-encoding": "gzip"}
    client: Client = api.client
    return client.post(f"/api/v1/otlp/v1/{signal}", body, content_type=kind, headers=headers)

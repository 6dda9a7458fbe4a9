"""Reading messages of OTLP: each point and record becomes counts under a digest, or a reason why it does not.

What only the harness knows by name (a session, a series, a record) is kept as a digest with the caller's key: enough to
see that the same was sent twice.
"""

import hashlib
import hmac
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, DataPointFlags

from telemetry.engine.otel.mapping import Mapping as Harness
from telemetry.engine.otel.mapping import Rule, is_of_another
from telemetry.engine.otel.measures import LARGEST, in_units

DELTA: Final = "delta"
CUMULATIVE: Final = "cumulative"
EVENT: Final = "event"

# Why a point or record is not taken.
PROMPT: Final = "prompt"
OTHER_HARNESS: Final = "other_harness"
NO_COUNTER: Final = "no_counter"
NO_NUMBER: Final = "no_number"
TOO_OLD: Final = "too_old"
FUTURE: Final = "future"

_AS_IT_GREW: Final = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
_NUMBER: Final = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_LONGEST: Final = 200  # of a text that we look at
_DIGEST: Final = 24  # hexadecimal digits


class Told(NamedTuple):
    """What one point or record counts for. `start_ns` is of a cumulative series: when it began at nothing."""

    session: str
    source: str
    key: str
    at_ns: int
    start_ns: int
    counts: Mapping[str, int]


class Span(NamedTuple):
    """The instants that are taken: what is older or newer is refused."""

    since_ns: int
    until_ns: int


@dataclass(slots=True)
class Read:
    """What a body told, and how many of its points or records are refused, by reason."""

    told: list[Told] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def take(self, told: Told | str) -> None:
        """Note a point or record, or the reason why it is refused; "" where nothing of it is counted."""
        if isinstance(told, Told):
            self.told.append(told)
        elif told:
            self.refused[told] += 1


def count_points(request: ExportMetricsServiceRequest, most: int) -> int:
    """Count the points of counters, which are all that is read; more than `most` where what they stand in is more."""
    return _count(
        most,
        request.resource_metrics,
        lambda resource: resource.scope_metrics,
        lambda scope: scope.metrics,
        lambda metric: metric.sum.data_points,
    )


def count_records(request: ExportLogsServiceRequest, most: int) -> int:
    """Count the records; more than `most` where what they stand in is more."""
    return _count(most, request.resource_logs, lambda resource: resource.scope_logs, lambda scope: scope.log_records)


def _count(most: int, parts: Sequence[Any], *within: Callable[[Any], Sequence[Any]]) -> int:
    """Count level by level, never going into one that is too many: an empty part is two bytes, and packs to nothing."""
    number = len(parts)
    for below in within:
        if number > most:
            break
        number = sum(len(below(part)) for part in parts)
        parts = [each for part in parts for each in below(part)] if number <= most else ()
    return number


def read_metrics(request: ExportMetricsServiceRequest, harness: Harness, span: Span, key: bytes) -> Read:
    """Read the points of the metrics that a harness is known for; others are passed over."""
    read = Read()
    for resource in request.resource_metrics:
        shared = _Shared(resource.resource.attributes)
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                name = metric.name.removeprefix(harness.prefix)
                if is_of_another(metric.name, harness):
                    read.take(OTHER_HARNESS)
                if name == metric.name or name not in harness.metrics:
                    continue
                place = _Place(harness, span, key, shared, scope.scope.name, metric.name)
                for told in _points(metric, harness.metrics[name], place):
                    read.take(told)
    return read


class _Shared:
    """The attributes of a resource, looked at once for all of its points or records: they may be many."""

    def __init__(self, attributes: Iterable[KeyValue]) -> None:
        self.plain = _plain(attributes)
        self.identity = hashlib.sha256(b"".join(_identity(attributes))).digest()


class _Place(NamedTuple):
    """Where a point or record stands: what it shares with its neighbours."""

    harness: Harness
    span: Span
    key: bytes
    shared: _Shared
    scope: str
    name: str

    def session_of(self, told: Mapping[str, Any]) -> str:
        """Return the digest of the harness's session; "" where it is not told."""
        name = self.harness.session
        session = told.get(name) or self.shared.plain.get(name)
        return self.digest("session", str(session)) if session else ""

    def digest(self, *parts: str | bytes) -> str:
        """Return a digest of some parts, with the caller's key."""
        found = hmac.new(self.key, digestmod=hashlib.sha256)
        for part in parts:
            said = part.encode() if isinstance(part, str) else part
            found.update(len(said).to_bytes(8, "big") + said)
        return found.hexdigest()[:_DIGEST]

    def digest_of(self, attributes: Iterable[KeyValue], *parts: str | bytes) -> str:
        """Return the digest of what has these attributes in this place."""
        return self.digest(self.name, self.scope, self.shared.identity, *_identity(attributes), *parts)

    def find_time_fault(self, at_ns: int) -> str:
        """Say why an instant is not taken; "" where it is."""
        if at_ns < self.span.since_ns:
            return TOO_OLD
        return FUTURE if at_ns > self.span.until_ns else ""


def _points(metric: Any, rules: tuple[Rule, ...], place: _Place) -> Iterator[Told | str]:
    temporality = metric.sum.aggregation_temporality
    is_known = temporality in (_AS_IT_GREW, AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE)
    if metric.WhichOneof("data") != "sum" or not metric.sum.is_monotonic or not is_known:
        yield NO_COUNTER
        return
    is_delta = temporality == _AS_IT_GREW
    for point in metric.sum.data_points:
        if point.flags & DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK:
            continue
        yield _point(point, rules, place, is_delta)


def _point(point: Any, rules: tuple[Rule, ...], place: _Place, is_delta: bool) -> Told | str:
    """Read one point. A series that begins anew has another start, and with it another digest."""
    at_ns, start_ns = point.time_unix_nano, point.start_time_unix_nano
    if fault := place.find_time_fault(at_ns):
        return fault
    value = getattr(point, point.WhichOneof("value") or "as_int")
    if not _is_count(value):
        return NO_NUMBER
    told = _plain(point.attributes)
    measure = next(filter(None, (_measure_of(rule, told, place.harness) for rule in rules)), "")
    if not measure:
        return ""
    counted = in_units(measure, value)
    if counted > LARGEST:
        return NO_NUMBER
    series = place.digest_of(point.attributes, str(start_ns), str(at_ns) if is_delta else "")
    source = DELTA if is_delta else CUMULATIVE
    return Told(place.session_of(told), source, series, at_ns, start_ns, {measure: counted})


def read_logs(request: ExportLogsServiceRequest, harness: Harness, span: Span, key: bytes) -> Read:
    """Read the events that a harness is known for; others are passed over, and every record with a prompt refused."""
    read = Read()
    for resource in request.resource_logs:
        shared = _Shared(resource.resource.attributes)
        for scope in resource.scope_logs:
            for record in scope.log_records:
                told = _plain(record.attributes)
                if harness.holds_prompt(told):
                    read.take(PROMPT)
                elif any(is_of_another(name, harness) for name in _names(record, told)):
                    read.take(OTHER_HARNESS)
                elif name := _event_name(record, told, harness):
                    place = _Place(harness, span, key, shared, scope.scope.name, name)
                    read.take(_event(record, told, place))
    return read


def _names(record: Any, told: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where the name of an event may stand: its attribute, its own field, its body."""
    return str(told.get("event.name", "")), record.event_name, record.body.string_value


def _event_name(record: Any, told: Mapping[str, Any], harness: Harness) -> str:
    """Return the known name of an event, without its prefix; "" for one that is not known."""
    names = (each.removeprefix(harness.prefix) for each in _names(record, told))
    return next((name for name in names if name in harness.events), "")


def _event(record: Any, told: Mapping[str, Any], place: _Place) -> Told | str:
    at_ns = record.time_unix_nano or record.observed_time_unix_nano
    if fault := place.find_time_fault(at_ns):
        return fault
    counts: Counter[str] = Counter()
    for rule in place.harness.events[place.name]:
        if not _applies(rule, told):
            continue
        if measure := _measure_of(rule, told, place.harness):
            counts[measure] += 1
        for attribute, valued in rule.values.items():
            number = _number(told.get(attribute))
            if number is None or in_units(valued, number) > LARGEST:
                return NO_NUMBER
            counts[valued] += in_units(valued, number)
    if not counts:
        return ""
    key = place.digest_of(record.attributes, str(at_ns), record.span_id)
    return Told(place.session_of(told), EVENT, key, at_ns, 0, dict(counts))


def _applies(rule: Rule, told: Mapping[str, Any]) -> bool:
    if rule.present and not told.get(rule.present):
        return False
    return all(told.get(name) == value for name, value in rule.when.items())


def _measure_of(rule: Rule, told: Mapping[str, Any], harness: Harness) -> str:
    if rule.decides:
        return harness.decided(told)
    return rule.of.get(str(told.get(rule.by, "")), "") if rule.by else rule.measure


# --- values ---------------------------------------------------------------------------------------------------
def _plain(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    """Return attributes by name; of one that is no text, number or truth, or is there twice, only that it is there."""
    found: dict[str, Any] = {}
    for each in attributes:
        found[each.key] = True if each.key in found else _scalar(each.value)
    return found


def _scalar(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return ""
    if kind == "string_value":
        return value.string_value[:_LONGEST]
    return getattr(value, kind) if kind in ("int_value", "double_value", "bool_value") else True


def _identity(attributes: Iterable[KeyValue]) -> list[bytes]:
    """Return what tells one set of attributes from another, in whatever order they stand."""
    return sorted(each.SerializeToString(deterministic=True) for each in attributes)


def _number(value: Any) -> float | None:
    """Return the count that an attribute tells, zero where it is left out; None for what is none."""
    if value is None or value == "":
        return 0
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    return value if _is_count(value) and not isinstance(value, bool) else None


def _is_count(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= LARGEST

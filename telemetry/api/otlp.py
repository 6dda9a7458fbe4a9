"""OTLP/HTTP for an agent's own harness: metrics and events, answered in the form that they came in.

Exporters append `/v1/metrics` and `/v1/logs` to their endpoint, which is `/api/v1/otlp`. A body of protobuf is refused
in protobuf (`google.rpc.Status`), one of JSON as every other request is.
"""

import json
from collections.abc import Callable
from datetime import date
from functools import wraps
from typing import Any, Final, TypeVar

from django.http import HttpRequest, HttpResponse
from google.protobuf.message import Message
from ninja import Router
from ninja.decorators import decorate_view
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from portal.core import throttle
from portal.core.errors import DomainError, NotAllowed, TooLarge
from portal.core.problems import answers
from principals.auth import actor_of, requires
from principals.engine.scopes import TELEMETRY
from telemetry import services
from telemetry.engine.otel import reading, wire
from telemetry.engine.otel.measures import ERRORS, REQUESTS
from telemetry.schemas.telling import LogsTaken, MetricsTaken, ToldDay, ToldDays
from telemetry.selectors import Period
from telemetry.selectors.harness import HarnessUse, telling_of

router = Router()
DAYS: Final = 30
AN_HOUR: Final = 300_000  # points and records of one agent: two dozen busy sessions have fewer
M = TypeVar("M", bound=Message)
Answer = Callable[..., HttpResponse]


class _UnsupportedMedia(DomainError):
    status, title, code = 415, "Unsupported media type", "unsupported_media_type"


class _Malformed(DomainError):
    status, title, code = 400, "Bad request", "otlp_malformed"


def _body(message: str) -> dict[str, Any]:
    """Return the description of a body, which `opentelemetry-proto` says in full."""
    words = f"{message} of OTLP 1, plain or with `Content-Encoding: gzip`."
    return {
        "requestBody": {
            "required": True,
            "description": words,
            "content": {
                wire.Form.JSON.value: {"schema": {"type": "object"}},
                wire.Form.PROTOBUF.value: {"schema": {"type": "string", "format": "binary"}},
            },
        }
    }


def in_its_form(operation: Answer) -> Answer:
    """Say what is refused in protobuf to whoever sent protobuf, the status and its headers as they are."""

    @wraps(operation)
    def run(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = operation(request, *args, **kwargs)
        if response.status_code >= 400 and request.content_type == wire.Form.PROTOBUF:
            problem = json.loads(response.content)
            words = " ".join(filter(None, (problem["detail"], problem["remedy"], f"({problem['code']})")))
            response.content = wire.write(wire.refusal(words), wire.Form.PROTOBUF)
            response["Content-Type"] = wire.Form.PROTOBUF.value
        return response

    return run


@router.post(
    "/v1/metrics", auth=requires(TELEMETRY), response=answers(200, MetricsTaken),
    openapi_extra=_body("ExportMetricsServiceRequest"),
)  # fmt: skip
@decorate_view(in_its_form)
def export_metrics(request: HttpRequest) -> HttpResponse:
    """Take the metrics of the agent's harness; what is not taken is said in `partialSuccess`."""
    services.expect_harness_telemetry(actor=actor_of(request))
    form, message = _read(request, ExportMetricsServiceRequest(), reading.count_points)
    taken = services.record_metrics(actor=actor_of(request), request=message)
    return _answer(wire.answer_metrics(taken.refused, taken.words), form)


@router.post(
    "/v1/logs",
    auth=requires(TELEMETRY),
    response=answers(200, LogsTaken),
    openapi_extra=_body("ExportLogsServiceRequest"),
)
@decorate_view(in_its_form)
def export_logs(request: HttpRequest) -> HttpResponse:
    """Take the events of the agent's harness; a record that holds a prompt is refused whole, and nothing of it kept."""
    services.expect_harness_telemetry(actor=actor_of(request))
    form, message = _read(request, ExportLogsServiceRequest(), reading.count_records)
    taken = services.record_logs(actor=actor_of(request), request=message)
    return _answer(wire.answer_logs(taken.refused, taken.words), form)


@router.post("/v1/traces", auth=requires(TELEMETRY), response=answers(200, LogsTaken))
@decorate_view(in_its_form)
def export_traces(request: HttpRequest) -> HttpResponse:
    """Refuse traces, always: spans hold what was said and done, and nothing here is made of them."""
    raise NotAllowed(
        "Traces are not taken here.",
        code="traces_not_taken",
        remedy="Set OTEL_TRACES_EXPORTER to none; send metrics and logs alone.",
    )


@router.get("/days", auth=requires("me:read"), response=answers(200, ToldDays))
def list_told_days(request: HttpRequest) -> ToldDays:
    """Say what the agent's own harness told in the last thirty days, by UTC day; empty where it told nothing."""
    actor = actor_of(request)
    if actor.agent is None:
        raise NotAllowed("This token is not an agent's.", code="not_an_agent", remedy="Use an agent's token.")
    found = telling_of(actor, actor.agent, Period.last_days(DAYS))
    return ToldDays(items=[_told_day(day, use) for day, use in found.by_day.items()])


def _told_day(day: date, use: HarnessUse) -> ToldDay:
    return ToldDay(
        day=day, sessions=len(use.sessions), cost_usd=use.cost, tokens=use.tokens_by_kind, requests=use.of(REQUESTS),
        errors=use.of(ERRORS), accepted=use.accepted, rejected=use.rejected, automatic=use.automatic,
    )  # fmt: skip


def _read(request: HttpRequest, message: M, count: Callable[[M, int], int]) -> tuple[wire.Form, M]:
    """Return a body's form and message. Errors: `TooLarge`, and 400 or 415 that say nothing of what was sent."""
    form = _form_of(request)
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise _UnsupportedMedia("The body's encoding is not known.", remedy="Send it plain or with gzip.")
    if int(request.META.get("CONTENT_LENGTH") or 0) > wire.MOST_PACKED:
        raise _too_large()
    try:
        wire.parse(wire.unpack(request.body, encoding), form, message)
    except wire.TooBig:
        raise _too_large() from None
    except wire.Unreadable:
        raise _Malformed(
            f"The body is no {type(message).__name__}.", remedy="Send what OTLP 1 says, as its headers tell."
        ) from None
    number = count(message, wire.MOST_TOLD)
    if number > wire.MOST_TOLD:
        raise _too_large()
    agent = actor_of(request).agent
    throttle.check(
        "otlp", str(agent and agent.pk), limit=AN_HOUR, window_s=3600, uses=number, what="points or records",
        remedy="Export less often: OTEL_METRIC_EXPORT_INTERVAL=60000.",
    )  # fmt: skip
    return form, message


def _form_of(request: HttpRequest) -> wire.Form:
    try:
        return wire.Form(request.content_type or "")
    except ValueError:
        raise _UnsupportedMedia(
            "The body is neither protobuf nor JSON.", remedy=f"Send it as {' or '.join(wire.Form)}."
        ) from None


def _too_large() -> TooLarge:
    return TooLarge(
        f"The body has more than {wire.MOST_PACKED >> 20} MB, {wire.MOST_UNPACKED >> 20} MB unpacked, or "
        f"{wire.MOST_TOLD} points, records, or parts around them.", remedy="Send it in smaller batches, more often.",
    )  # fmt: skip


def _answer(message: Message, form: wire.Form) -> HttpResponse:
    return HttpResponse(wire.write(message, form), content_type=form.value)

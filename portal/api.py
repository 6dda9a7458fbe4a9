"""The REST API: one API, bearer tokens only. Each app brings a router; failures are problem+json."""

from collections.abc import Sequence

import structlog
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from ninja.errors import HttpError, ValidationError

from memory.api import router as memory_router
from policies.api import router as policies_router
from portal.agents import router as agents_router
from portal.core import disk, problems
from portal.core.errors import DomainError
from portal.me import router as me_router
from portal.openapi import GatehouseAPI
from portal.realtime.api import router as events_router
from principals.api import router as principals_router
from security.api import router as security_router
from telemetry.api import router as telemetry_router

log = structlog.get_logger(__name__)

api = GatehouseAPI(
    title="Gatehouse",
    version="1",
    description="What a coding agent, its harness and site automation ask of an HPC facility.",
    urls_namespace="api-1",
    docs_url=None,
)


@api.exception_handler(DomainError)
def _domain_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    return problems.from_error(error)


@api.exception_handler(ValidationError)
def _validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [{"where": _where(item.get("loc", ())), "message": str(item.get("msg", ""))} for item in error.errors]
    return problems.problem_response(
        status=422,
        title="Invalid",
        code="invalid",
        detail="; ".join(f"{item['where']}: {item['message']}" for item in errors[:5]),
        remedy="Send what the OpenAPI document describes.",
        errors=errors,
    )


def _where(place: Sequence[object]) -> str:
    """Return where a fault is, as whoever sent it knows it: what our function calls the body is not theirs to know."""
    known = (place[0], *place[2:]) if place and place[0] == "body" else place
    return ".".join(map(str, known))


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problems.plain(error.status_code)


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return problems.plain(404)


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problems.plain(413)


@api.exception_handler(Exception)
def _unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    log.exception("api_failure", exc_info=error)
    return problems.plain(disk.STATUS if disk.is_full(error) else 500)


api.add_router("/events", events_router)
api.add_router("", me_router, tags=["principals"])
api.add_router("", principals_router, tags=["principals"])
api.add_router("", agents_router, tags=["principals"])
api.add_router("", security_router, tags=["security"])
api.add_router("", telemetry_router, tags=["telemetry"])
api.add_router("", policies_router, tags=["policies"])
api.add_router("", memory_router, tags=["memory"])

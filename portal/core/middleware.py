"""Middleware of the kernel: a trustworthy request id, and problem+json for every failure under /api/."""

import re
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from structlog.contextvars import get_contextvars

from portal.core import logs, problems
from portal.core.errors import Invalid

GetResponse = Callable[[HttpRequest], HttpResponseBase]
# PostgreSQL fails on zero characters; no name or text of ours holds one.
_ZERO = Invalid("The query holds zero characters.", code="zero_character", remedy="Send text without them.")
_CLEAN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


class RequestIdMiddleware:
    """Drop a request id that is no plain token or looks like a secret, and send ours back.

    It goes into logs and audit rows. Stands before django-structlog's middleware, which reads it or makes one.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        if not _CLEAN_ID.match(given) or logs.redacted(given) != given:
            request.META.pop("HTTP_X_REQUEST_ID", None)
        return self.get_response(request)


class ProblemMiddleware:
    """Refuse oversized bodies early, and turn any bare failure under /api/ into problem+json."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._respond(request)
        request_id = get_contextvars().get("request_id")
        if request_id:
            response["X-Request-ID"] = str(request_id)
        return response

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        if not problems.is_api(request):
            return self.get_response(request)
        if _announced_length(request) > settings.INGEST_MAX_BYTES:
            return problems.plain(413)
        if "\0" in request.path_info:
            return problems.plain(404)
        if "%00" in request.META.get("QUERY_STRING", ""):
            return problems.from_error(_ZERO)
        response = self.get_response(request)
        if response.status_code < 400 or _says_why(response):
            return response
        problem = problems.plain(response.status_code)
        for name in ("Allow", "Retry-After", "WWW-Authenticate"):
            if name in response:
                problem[name] = response[name]
        return problem


def _says_why(response: HttpResponseBase) -> bool:
    """Say whether a failure speaks for itself: as a problem or, to clients of OTLP, as protobuf."""
    kind = response.get("Content-Type", "")
    return "json" in kind or "protobuf" in kind


def _announced_length(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


class NoStoreMiddleware:
    """Keep answers that depend on who asks out of every cache."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if isinstance(response, HttpResponse) and "Cache-Control" not in response:
            response["Cache-Control"] = "no-store"
        return response

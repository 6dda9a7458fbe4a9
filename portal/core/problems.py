"""Problem details (RFC 9457): the one form of every API failure.

Members beyond the RFC: `code` (stable), `remedy` (what would make it pass), `retry_after_s`, `errors` (by field),
`request_id`.
"""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, JsonResponse
from ninja import Schema
from structlog.contextvars import get_contextvars

from portal.core.errors import DomainError

# Of no kind that a page explains (RFC 9457, 4.2.1): `code` says which problem it is, `detail` and `remedy` the rest.
ABOUT_BLANK = "about:blank"


class FieldError(Schema):
    """What is wrong with one part of the request."""

    where: str
    message: str


class Problem(Schema):
    """A problem as an agent reads it."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    remedy: str = ""
    retry_after_s: int | None = None
    errors: list[FieldError] = []
    request_id: str = ""


# For `response=` of an operation: every status that any operation may answer.
EVERY_OPERATION = (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 507)


def answers(status: int, schema: Any) -> dict[int, Any]:
    """Return the `response=` of an operation: its own answer and the problems that any operation may give."""
    return {status: schema} | dict.fromkeys(EVERY_OPERATION, Problem)


def problem_response(
    *,
    status: int,
    title: str,
    code: str,
    detail: str,
    remedy: str = "",
    retry_after_s: int | None = None,
    errors: list[dict[str, str]] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> JsonResponse:
    """Build the response, with `Retry-After` and `WWW-Authenticate` where they belong."""
    body: dict[str, Any] = {
        "type": ABOUT_BLANK,
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "remedy": remedy,
        "retry_after_s": retry_after_s,
        "errors": errors or [],
        "request_id": str(get_contextvars().get("request_id", "")),
    }
    response = JsonResponse({**(extra or {}), **body}, status=status, content_type="application/problem+json")
    if retry_after_s is not None:
        response["Retry-After"] = str(retry_after_s)
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="gatehouse"'
    return response


def from_error(error: DomainError) -> JsonResponse:
    """Turn a domain error into its response."""
    return problem_response(
        status=error.status,
        title=error.title,
        code=error.code,
        detail=error.detail,
        remedy=error.remedy,
        retry_after_s=error.retry_after_s,
        extra=error.extra,
    )


_PLAIN = {
    400: ("Bad request", "bad_request", "The request could not be read.", "Send what the OpenAPI document describes."),
    401: ("Not signed in", "unauthenticated", "This needs a token.", "Send `Authorization: Bearer <token>`."),
    403: ("Not allowed", "not_allowed", "This is not allowed.", ""),
    404: ("Not found", "not_found", "There is nothing at this address.", "See /api/v1/openapi.json for what there is."),
    405: ("Method not allowed", "method_not_allowed", "This address does not take that method.",
          "The `Allow` header names those it takes."),
    413: ("Too large", "too_large", "The body is larger than the portal takes.",
          "Send it in several requests, or load the file with `manage.py ingest_jobs`."),
    415: ("Unsupported media type", "unsupported_media_type", "The body is of a kind this address does not take.", ""),
    500: ("Internal error", "internal_error", "Something failed here; it was noted under the request id.",
          "Try again; if it goes on, tell the operators the request id."),
    507: ("No room left", "disk_full", "The portal’s disk is full, so this could not be done.",
          "Tell the operators that the database needs room; send it again when there is."),
}  # fmt: skip


def plain(status: int) -> JsonResponse:
    """Return the problem for a bare status that no domain error explains."""
    title, code, detail, remedy = _PLAIN.get(status) or (
        "Refused",
        f"status_{status}",
        f"Status {status}.",
        "",
    )
    return problem_response(status=status, title=title, code=code, detail=detail, remedy=remedy)


def is_api(request: HttpRequest) -> bool:
    """Say whether a request is for the API, whose failures are problems, never pages."""
    return request.path_info.startswith("/api/")

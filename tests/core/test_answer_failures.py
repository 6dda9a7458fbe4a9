"""Failures under /api/ are problems with a stable code; request ids are clean and come back; pages stay pages."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import path
from pytest_django import Settings

from portal.core import clock, middleware, problems, throttle
from portal.core.errors import NotFound, TooMany
from tests.security.engine.corpus import make_values

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _fail(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a fault of ours")


def _missing(request: HttpRequest) -> HttpResponse:
    raise Http404


def _plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse("fine")


def _json_refusal(request: HttpRequest) -> HttpResponse:
    return HttpResponse('{"code": "own"}', status=409, content_type="application/problem+json")


def _odd(request: HttpRequest) -> HttpResponse:
    return HttpResponse("teapot", status=418)


def _only_post(request: HttpRequest) -> HttpResponse:
    response = HttpResponse(status=405)
    response["Allow"] = "POST"
    return response


_views = {
    "fail": _fail, "missing": _missing, "plain": _plain, "json": _json_refusal, "odd": _odd, "post": _only_post,
}  # fmt: skip
# This module is the URLconf of its own tests.
urlpatterns = [path(f"{prefix}{name}", view) for prefix in ("api/", "page/") for name, view in _views.items()]


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    settings.ROOT_URLCONF = __name__
    yield Client(raise_request_exception=False)


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("missing", 404, "not_found"),
        ("nowhere", 404, "not_found"),
        ("post", 405, "method_not_allowed"),
        ("fail", 500, "internal_error"),
        ("odd", 418, "status_418"),
    ],
)
def test_every_failure_under_api_is_a_problem(client: Client, name: str, status: int, code: str) -> None:
    response = client.get(f"/api/{name}")
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == "about:blank"  # an address that leads nowhere would promise a page
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"] == response["X-Request-ID"]
    assert "fault of ours" not in response.text


def test_the_methods_that_are_allowed_are_still_named(client: Client) -> None:
    assert client.get("/api/post")["Allow"] == "POST"


def test_a_page_fails_as_a_page(client: Client) -> None:
    for name in ("missing", "fail", "odd"):
        response = client.get(f"/page/{name}")
        assert "json" not in response["Content-Type"]


def test_what_succeeds_or_is_a_problem_already_passes_unchanged(client: Client) -> None:
    assert client.get("/api/plain").text == "fine"
    assert client.get("/api/json").json() == {"code": "own"}


def test_a_body_that_is_announced_as_too_large_is_refused_unread(client: Client, settings: Settings) -> None:
    settings.INGEST_MAX_BYTES = 10
    response = client.post("/api/plain", b"x" * 11, content_type="text/plain")
    assert (response.status_code, response.json()["code"]) == (413, "too_large")
    assert client.post("/api/plain", b"x" * 10, content_type="text/plain").status_code == 200


@pytest.mark.parametrize("length", ["", "many", "-5"])
def test_an_odd_content_length_is_no_failure(length: str, settings: Settings) -> None:
    request = RequestFactory().post("/api/plain", CONTENT_LENGTH=length)
    passed = middleware.ProblemMiddleware(lambda request: HttpResponse("fine"))(request)
    assert passed.status_code == 200


def test_a_plain_request_id_comes_back(client: Client) -> None:
    assert client.get("/api/plain", headers={"x-request-id": "run-7.a_B"})["X-Request-ID"] == "run-7.a_B"


@pytest.mark.parametrize("wrong", ["a b", "x" * 65, "a\nb", "<script>", "é", ""])
def test_a_request_id_that_is_no_plain_token_is_replaced(client: Client, wrong: str) -> None:
    assert UUID.fullmatch(client.get("/api/plain", headers={"x-request-id": wrong})["X-Request-ID"])


@pytest.mark.parametrize("name", ["ghp", "npm", "databricks", "akia"])
def test_a_request_id_that_looks_like_a_secret_is_replaced(client: Client, name: str) -> None:
    secret = make_values()[name]
    assert UUID.fullmatch(client.get("/api/plain", headers={"x-request-id": secret})["X-Request-ID"])


def test_answers_are_kept_out_of_caches(client: Client) -> None:
    assert client.get("/api/plain")["Cache-Control"] == "no-store"


def test_a_domain_error_keeps_its_code_remedy_and_extra() -> None:
    error = NotFound("No such agent.", code="agent_unknown", remedy="See /agents/.", extra={"agent": "x", "status": 1})
    response = problems.from_error(error)
    body = json.loads(response.content)
    assert (response.status_code, body["status"], body["code"], body["agent"]) == (404, 404, "agent_unknown", "x")


def test_a_problem_says_when_to_come_back_and_how_to_sign_in() -> None:
    later = problems.from_error(TooMany("Slow down.", retry_after_s=0))
    assert (later.status_code, later["Retry-After"]) == (429, "1")
    assert problems.plain(401)["WWW-Authenticate"].startswith("Bearer")


def test_uses_past_the_limit_are_refused_with_the_seconds_to_wait() -> None:
    now = datetime(2026, 7, 1, 12, 0, 20, tzinfo=UTC)
    with clock.at(now):
        for _ in range(3):
            throttle.check("test", "a", limit=3)
        with pytest.raises(TooMany) as caught:
            throttle.check("test", "a", limit=3)
        throttle.check("test", "b", limit=3)
        throttle.check("other", "a", limit=3)
    assert caught.value.retry_after_s is not None
    assert 0 < caught.value.retry_after_s <= 61
    with clock.at(now + timedelta(seconds=caught.value.retry_after_s)):
        throttle.check("test", "a", limit=3)

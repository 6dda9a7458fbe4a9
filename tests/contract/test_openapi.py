"""The API keeps its own description: schemathesis sends what the document allows and what it forbids.

Every operation, as an agent or as site automation with every scope its kind can carry. A fresh database per
operation, so that nothing one example leaves behind decides about another operation.
"""

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.http import HttpResponse
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from portal.api import api
from portal.realtime import longpoll
from principals.engine.scopes import SCOPES, scopes_for
from principals.engine.tokens import TokenKind
from tests import factories

EXAMPLES = 12
CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.negative_data_rejection,
    openapi_checks.unsupported_method,
    openapi_checks.allow_header_conformance,
]
pytestmark = pytest.mark.one_database


def _schema():
    return schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())


def _operations() -> dict[str, str]:
    return {
        details["operationId"]: next(iter(details["security"][0].values()))[0]
        for methods in api.get_openapi_schema()["paths"].values()
        for details in methods.values()
        if details["security"]
    }


def _open_operations() -> list[str]:
    """Return the operations that ask for no token: how one is got."""
    return sorted(
        details["operationId"]
        for methods in api.get_openapi_schema()["paths"].values()
        for details in methods.values()
        if not details["security"]
    )


def test_every_page_of_a_list_has_its_rows_in_items() -> None:
    """A page has a `next` that is null at the end; the stream of events has no end."""
    schemas = api.get_openapi_schema()["components"]["schemas"]
    pages = {
        name: {key for key, told in schema["properties"].items() if told.get("type") == "array"}
        for name, schema in schemas.items()
        if {"type": "null"} in schema.get("properties", {}).get("next", {}).get("anyOf", ())
    }
    assert {"JobPage", "QuarantinePage", "TrialPage", "ExtensionPage"} <= pages.keys()
    assert {name: rows for name, rows in pages.items() if rows != {"items"}} == {}


@pytest.fixture
def _kept_connection():
    """Keep the test's transaction through a real WSGI handler, as Django's own test client does."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


def _without_waiting(poll):
    """What waiting does is tested in tests/realtime."""
    return lambda viewer, heard, *, after, wait_s: poll(viewer, heard, after=after, wait_s=0)


async def _without_streaming(viewer, heard, *, after):
    """A stream has no end, and a WSGI server cannot serve one."""
    return HttpResponse("", content_type="text/event-stream")


@pytest.fixture
def tokens(cast, monkeypatch, _kept_connection) -> dict[TokenKind, str]:
    """One token of each kind, with every scope it can carry, that no throttle stops."""
    monkeypatch.setattr("principals.auth.REQUESTS_PER_MINUTE", 1_000_000)
    monkeypatch.setattr("portal.realtime.api.longpoll.poll", _without_waiting(longpoll.poll))
    monkeypatch.setattr("portal.realtime.api.sse.respond", _without_streaming)
    names = {kind: [scope.name for scope in scopes_for(kind)] for kind in TokenKind}
    return {
        TokenKind.AGENT: factories.make_token(cast.agent, *names[TokenKind.AGENT]),
        TokenKind.SERVICE: factories.make_service_token(*names[TokenKind.SERVICE]),
    }


@pytest.mark.parametrize(("operation_id", "scope"), _operations().items())
def test_an_operation_keeps_its_description(tokens, operation_id, scope):
    (kind,) = SCOPES[scope].kinds
    operation = _schema().find_operation_by_id(operation_id)

    def check(case):
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {tokens[kind]}"}
        case.call_and_validate(checks=CHECKS)

    _each_case(operation, check)


@pytest.mark.parametrize("operation_id", _open_operations())
def test_an_operation_without_a_token_keeps_its_description(cast, monkeypatch, _kept_connection, operation_id):
    monkeypatch.setattr("principals.api.LOGINS_PER_MINUTE", 1_000_000)

    def check(case):
        case.call_and_validate(checks=CHECKS)

    operation = _schema().find_operation_by_id(operation_id)
    takes = operation.body or operation.query or operation.path_parameters
    # What takes nothing can be sent nothing wrong.
    _each_case(operation, check, schemathesis.GenerationMode if takes else [schemathesis.GenerationMode.POSITIVE])


def _each_case(operation, check, modes=schemathesis.GenerationMode) -> None:
    for mode in modes:
        run = given(case=operation.as_strategy(generation_mode=mode))(check)
        settings(
            max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate),
        )(run)()  # fmt: skip


def test_every_operation_names_its_scope_and_a_tag_with_words():
    document = api.get_openapi_schema()
    known = {tag["name"] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for details in methods.values():
            assert set(details["tags"]) and set(details["tags"]) <= known, path
            is_open = not details["security"]
            assert path.startswith("/api/v1/login/") if is_open else details["security"][0]["token"][0] in SCOPES, path
            assert details["summary"] and details["description"], path


def test_operation_ids_are_unique_and_say_what_is_done():
    ids = [
        details["operationId"] for methods in api.get_openapi_schema()["paths"].values() for details in methods.values()
    ]
    assert len(set(ids)) == len(ids)
    assert all(each.isidentifier() and "api" not in each for each in ids)


def test_failures_are_documented_as_problems(client):
    document = client.get("/api/v1/openapi.json").json()
    assert list(document["components"]["responses"]["Problem"]["content"]) == ["application/problem+json"]
    for methods in document["paths"].values():
        for details in methods.values():
            for status in ("401", "403", "422", "429"):
                assert details["responses"][status] == {"$ref": "#/components/responses/Problem"}

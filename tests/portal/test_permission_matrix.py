"""Every route × every role: one table decides, and a route that is missing from it fails the suite."""

import re

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests import factories
from tests.conftest import Cast, sign_in
from tests.portal.permission_table import OPERATIONS, PAGES, PEOPLE, TOKENS, Row
from tests.portal.permission_world import paths_of

# Django's own addresses that answer without looking at who asks.
# The long-poll reads in a thread that does not see a test's transaction; tests/realtime/test_poll.py tells who may.
FREE = {"static/<path>", "live/events/"}


def _routes(resolver: URLResolver, prefix: str = "") -> list[str]:
    found = []
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            found += _routes(entry, route)
        elif isinstance(entry, URLPattern):
            found.append(route)
    return found


def _shape(path: str) -> str:
    """Reduce a route or a path of the table to its shape: parameters become `*`."""
    return re.sub(r"<[^>]+>|\{[^}]+\}", "*", path).strip("/")


def test_every_route_stands_in_the_table() -> None:
    known = {_shape(row.path.split("?")[0]) for row in PAGES + OPERATIONS}
    missing = {_shape(route) for route in _routes(get_resolver())} - known - {_shape(route) for route in FREE}
    assert missing == {"api/v1"} or missing == set(), (
        f"add these to tests/portal/permission_table.py: {sorted(missing)}"
    )


def test_every_operation_stands_in_the_table() -> None:
    from portal.api import api

    documented = {
        (method.upper(), _shape(path))
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method in methods
    }
    known = {(row.method, _shape(row.path.split("?")[0])) for row in OPERATIONS}
    assert documented - known == set()


def _send(client: Client, row: Row, path: str) -> HttpResponse:
    if row.method == "GET":
        return client.get(path)
    if isinstance(row.body, str):
        return client.generic(row.method, path, row.body, content_type="text/plain")
    if path.startswith("/api/"):
        return client.generic(row.method, path, _json(row.body), content_type="application/json")
    return client.generic(row.method, path, "", content_type="application/x-www-form-urlencoded")


def _json(body: object) -> str:
    import json

    return json.dumps(body or {})


def _name(row: Row) -> str:
    return f"{row.method} {row.path}"


@pytest.mark.parametrize("row", PAGES, ids=_name)
def test_people_get_what_the_table_says(cast: Cast, row: Row) -> None:
    path = paths_of(cast, row.path)
    got = {}
    for role in PEOPLE:
        user = None if role == "nobody" else getattr(cast, role)
        got[role] = _send(sign_in(user), row, path).status_code
    assert got == {role: row.expect(role) for role in PEOPLE}


@pytest.mark.parametrize("row", OPERATIONS, ids=_name)
def test_tokens_get_what_the_table_says(cast: Cast, row: Row) -> None:
    from principals.engine import scopes, tokens

    every = [scope.name for scope in scopes.scopes_for(tokens.TokenKind.AGENT)]
    plain = {
        "none": "",
        "agent": factories.make_token(cast.agent, *every),
        "foreign_agent": factories.make_token(cast.foreign_agent, *every),
        "service": factories.make_service_token(),
    }
    path = paths_of(cast, row.path)
    got = {}
    for role in TOKENS:
        headers = {"authorization": f"Bearer {plain[role]}"} if plain[role] else {}
        got[role] = _send(Client(headers=headers), row, path).status_code
    assert got == {role: row.expect(role) for role in TOKENS}


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row.expect("none") == 401], ids=_name)
def test_a_session_cookie_opens_no_operation(cast: Cast, row: Row) -> None:
    assert _send(sign_in(cast.staff), row, paths_of(cast, row.path)).status_code == 401

"""Zero characters, dates at the ends of time and counters without number: refused or read past, never a failure."""

import json
from typing import Any

import pytest

from portal.core import throttle
from portal.core.errors import TooMany
from portal.supervisor.children import embedded_children
from tests.conftest import Api, Cast, sign_in

pytestmark = pytest.mark.sql

FILTERS = {
    "/jobs/": ("cluster", "harness", "lab", "partition", "qos", "user", "agent", "campaign"),
    "/jobs/live/": ("lab", "user"),
    "/agents/": ("q", "lab", "status", "harness"),
    "/audit/": ("actor", "verb", "kind", "object", "lab"),
    "/incidents/": ("lab",),
    "/lessons/": ("lab",),
    "/overview/": ("cluster",),
    "/reports/": ("cluster", "from"),
    "/search/": ("q",),
}


@pytest.mark.parametrize("path", FILTERS)
def test_a_filter_with_a_zero_character_is_read_without_it(cast: Cast, path: str) -> None:
    browser = sign_in(cast.staff)
    for name in FILTERS[path]:
        assert browser.get(path, {name: "a\0b"}).status_code in {200, 404}, name


@pytest.mark.parametrize("path", ["/agents/%00/", "/jobs/a%00b/1/", "/my-lab/%00/costs.json", "/lessons/l_%00/"])
def test_nothing_is_named_with_a_zero_character(cast: Cast, path: str) -> None:
    assert sign_in(cast.staff).get(path).status_code == 404


def test_a_form_with_a_zero_character_is_refused(cast: Cast) -> None:
    answer = sign_in(cast.staff).post("/reports/draft/", {"cluster": "as\0ter", "period": "2026-06"})
    assert answer.status_code == 422


def test_the_api_refuses_a_zero_character(cast: Cast, agent_api: Api) -> None:
    assert agent_api.client.get("/api/v1/jobs/as%00ter/1").status_code == 404
    answer = agent_api.client.get("/api/v1/jobs?campaign=%00")
    assert (answer.status_code, answer.json()["code"]) == (422, "zero_character")


@pytest.mark.parametrize("campaign", ["a\0b", "a\nb", "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"])
def test_a_campaign_that_cannot_be_kept_is_rejected(cast: Cast, service_api: Api, campaign: str) -> None:
    session = {"host": "login01", "user": "pi", "harness": "claude-code", "start": "2026-07-01T00:00:00Z"}
    body = {"cluster": "aster", "sessions": [session | {"campaign": campaign}]}
    answer = service_api.post("/ingest/sessions", json.dumps(body))
    assert (answer.status_code, answer.json()["results"][0]["reason"]) == (200, "campaign_invalid")


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_finding_from_the_ends_of_time_is_rejected(cast: Cast, service_api: Api, at: str) -> None:
    finding: dict[str, Any] = {"kind": "other", "detector": "d", "occurred": at, "host": "login01"}
    answer = service_api.post("/ingest/findings", json.dumps({"cluster": "aster", "findings": [finding]}))
    assert (answer.status_code, answer.json()["outcomes"][0]["code"]) == (200, "occurred_out_of_range")


@pytest.mark.parametrize("path", ["/jobs/", "/jobs/live/", "/audit/"])
@pytest.mark.parametrize("query", [{"to": "9999-12-31"}, {"from": "0001-01-01"}])
def test_a_day_at_the_ends_of_time_is_no_day(cast: Cast, path: str, query: dict[str, str]) -> None:
    assert sign_in(cast.staff).get(path, query).status_code == 422


def test_a_month_at_the_end_of_time_is_no_month(cast: Cast) -> None:
    assert sign_in(cast.staff).post("/reports/draft/", {"cluster": "aster", "month": "9999-12"}).status_code == 422


def test_other_counters_do_not_push_a_throttle_out(standing_clock: None) -> None:
    for _ in range(3):
        throttle.check("test", "me", limit=3, window_s=3600)
    for number in range(2000):
        throttle.check("test", f"other-{number}", limit=3, window_s=3600)
    with pytest.raises(TooMany):
        throttle.check("test", "me", limit=3, window_s=3600)


def test_nobody_on_the_host_names_their_own_address() -> None:
    web = next(child for child in embedded_children(host="127.0.0.1", port=8000) if child.name == "web")
    assert "--no-proxy-headers" in web.command

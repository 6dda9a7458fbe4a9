"""The generator's agents at five places: each session at one, each log as its server writes it."""

from collections import Counter
from datetime import UTC
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from portal.demo.paper.activity.bodies import Bodies
from portal.demo.paper.places import published
from portal.demo.paper.places.books import PlaceBooks
from portal.demo.paper.places.logs import daily_logs
from portal.demo.paper.places.placing import Placement
from portal.demo.paper.places.visits import Visit, plan_visits, requests_of
from portal.demo.paper.plan import Plan, make_plan
from telemetry.engine.gateways import Request, read_line
from telemetry.engine.gateways.chains import GAP_S


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(seed=7, share=0.004, zone="America/New_York")


@pytest.fixture(scope="module")
def visits(plan: Plan) -> list[Visit]:
    return plan_visits(Random("7:gateways"), plan)


def rows_of(bodies: list[dict[str, Any]], name: str) -> Counter[str]:
    """Count the rows of a list, but for what nobody is known to drive."""
    return Counter(repr(sorted(row.items())) for body in bodies for row in body[name] if row.get("driver") != "unknown")


def test_parting_bodies_loses_and_adds_nothing_of_sessions(plan: Plan) -> None:
    books = PlaceBooks()
    placement = Placement(plan, books)
    whole = list(Bodies(plan, "cannon"))
    parts = [part for body in whole for part in placement.split(body)]
    for name in ("minutes", "submissions", "polling", "loops"):
        assert rows_of(whole, name) == rows_of(parts, name)
    places: dict[tuple[str, str], str] = {}
    for part in parts:
        named = {row["session"] for name in ("minutes", "submissions", "polling", "loops") for row in part[name]}
        told = {row["id"] for row in part["sessions"]}
        assert named - {""} <= told
        for row in part["sessions"]:
            assert places.setdefault((part["host"], row["id"]), row["place"]) == row["place"]
            assert (row["place"] == "job") == ("job" in row)
            assert row["kind"] == "agent" or row["place"] == "login"
        elsewhere = {"job": "holy", "agent_host": "agents"}
        for row in part["sessions"]:
            assert part["host"].startswith(elsewhere.get(row["place"], "login"))
    assert len(places) == len(plan.spans)
    assert set(places.values()) == {"login", "job", "ssh", "agent_host"}


def test_who_works_where_is_as_large_a_part_as_is_said(plan: Plan) -> None:
    placed = Counter(Placement(plan, PlaceBooks()).of_person.values())
    for place, share in published.PEOPLE.items():
        assert placed[place] == pytest.approx(share * placed.total(), abs=1)


def test_a_visit_is_one_session_within_one_and_submits_all_that_is_submitted_meanwhile(
    plan: Plan, visits: list[Visit]
) -> None:
    assert len(visits) > 20 and {visit.gateway for visit in visits} == {"ondemand", "firecrest"}
    for visit in visits:
        (span,) = {act.span for act in visit.acts}
        assert span is not None and span.start_s < visit.start_s and visit.end_s < (span.end_s or plan.end_s)
        moments = [at_s for at_s, _ in requests_of(visit)]
        assert (moments[0], moments[-1]) == (visit.start_s, visit.end_s)
        assert all(0 < after - before <= GAP_S for before, after in pairwise(moments))
        meanwhile = [
            act for act in plan.acts
            if act.person == visit.person and visit.start_s - 10 <= act.at_s <= visit.end_s + 10
        ]  # fmt: skip
        assert list(visit.acts) == meanwhile
    by_person = sorted(visits, key=lambda one: (one.person, one.start_s))
    for one, other in pairwise(by_person):
        assert one.person != other.person or other.start_s - one.end_s > 2 * GAP_S


def test_every_line_of_a_log_is_read(plan: Plan, visits: list[Visit]) -> None:
    agents = submissions = 0
    for _, kind, lines in daily_logs(Random("7:logs"), plan, visits, "cannon"):
        for line in lines:
            found = read_line(kind, line, zone=UTC)
            assert isinstance(found, Request), line
            agents += found.client.driver == "agent"
            submissions += found.act == "submission"
    assert agents == sum(len(requests_of(visit)) for visit in visits)
    assert submissions == sum(len(visit.acts) for visit in visits)

"""Sending the logs of gateways by the way of the importer, each day as it is over."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from portal.core import clock
from portal.core.errors import Conflict
from portal.demo.paper.places import published
from portal.demo.paper.places.books import PlaceBooks
from portal.demo.paper.places.logs import daily_logs
from portal.demo.paper.places.placing import Placement
from portal.demo.paper.places.published import GATEWAY
from portal.demo.paper.places.visits import plan_visits
from portal.demo.paper.plan import Plan
from portal.demo.plan import AGENT
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services as telemetry_services

_LATE: Final = timedelta(days=1, hours=1)


def send_logs(
    plan: Plan, cluster: Cluster, placement: Placement, books: PlaceBooks, say: Callable[[str], object]
) -> None:  # fmt: skip
    """Import every log, and note in the books where agents work. Errors: `Conflict` where a line is refused."""
    rng = Random(f"{plan.seed}:gateways")
    visits = plan_visits(rng, plan)
    books.note_people(len(plan.people))
    for span in plan.spans:
        if span.kind == AGENT:
            books.note_session(placement.of_span(span), span.person)
    posted = {id(act) for visit in visits for act in visit.acts}
    for visit in visits:
        books.note_session(GATEWAY, visit.person)
    for act in plan.acts:
        place = GATEWAY if id(act) in posted else placement.of_span(act.span)
        books.note_submission(act.actor, place, act.size)
    say(f"Importing what gateways logged of {len(visits):,} visits …")
    asked = telemetry_services.Asked(UTC)
    for day, kind, lines in daily_logs(rng, plan, visits, cluster.name):
        with clock.at(datetime(day.year, day.month, day.day, tzinfo=UTC) + _LATE):
            summary = telemetry_services.import_gateway_log(
                actor=SYSTEM_ACTOR, cluster=cluster, lines=lines, kind=kind, host=published.GATEWAYS[kind],
                name=f"{day}.log", asked=asked,
            )  # fmt: skip
        if summary.batch.rejected_rows or summary.passed:
            raise Conflict(f"Lines of {kind} of {day} are refused: {dict(summary.passed)}.", code="refused")

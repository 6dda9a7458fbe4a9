"""Load the demo facility into an empty database, through the services that real data comes through."""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random

from django.conf import settings
from django.db import transaction

from portal.core import clock
from portal.core.errors import Conflict
from portal.demo import (
    activity,
    agents,
    cast,
    desk,
    gpus,
    memory,
    people,
    places,
    policies,
    scheduler,
    security,
    telemetry,
)
from portal.demo.facility import Facility, build_facility
from portal.demo.history import Stage, person, play
from portal.demo.plan import DAYS
from portal.reports import services as report_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, Lab, User
from telemetry import services as telemetry_services
from telemetry.models import IngestSource
from telemetry.selectors import Period

Say = Callable[[str], object]


def find_demo() -> Cluster | None:
    """Return the demo's cluster, None where nothing is loaded. Errors: `Conflict` where anything is real."""
    for model in (Cluster, User, Lab):
        real = model.objects.filter(is_demo=False).order_by("pk").first()
        if real is not None:
            raise Conflict(
                f"This database holds real data ({model._meta.verbose_name} {real}), so no demo is mixed into it.",
                code="not_a_demo", remedy="Point GATEHOUSE_DATA or DATABASE_URL at an empty one.",
            )  # fmt: skip
    return Cluster.objects.filter(name=cast.CLUSTER).first()


def load_demo(*, seed: int, now: datetime, jobs: int, say: Say) -> Facility:
    """Make the whole facility as it stands at `now`, or nothing: one transaction, on a database nobody else uses yet.

    The same seed, instant and number of jobs give the same facility. Errors: `Conflict` where anything is loaded.
    """
    if find_demo() is not None:
        raise Conflict("The demo facility is there already.", code="demo_exists")
    now = now.replace(microsecond=0)
    say(f"Thinking up {jobs:,} jobs of {len(cast.LAB_OF)} people in {len(cast.LABS)} labs …")
    facility = build_facility(seed=seed, now=now, zone=settings.FACILITY_TIME_ZONE, jobs=jobs)
    start = now - timedelta(days=DAYS)
    with transaction.atomic():
        with clock.at(start):
            cluster = people.make_people()
        stage = Stage(cluster, start, now, Random(seed))
        say("Registering agents, asking for trials, reporting findings, declaring sessions …")
        stories = (agents, policies, memory, security, desk)
        play([*(act for app in stories for act in app.acts(stage)), *policies.requests(facility.trials)])
        with clock.at(now):
            telemetry.declare_all(stage, facility)
        say(f"Storing {len(facility.records):,} job records, day by day …")
        play([*telemetry.acts(stage, facility), *policies.settlings(stage)])
        say("Computing rollups …")
        with clock.at(now):
            telemetry_services.catch_up(cluster=cluster)
            gpus.tell_all(stage, facility, Random(f"{seed}:gpus"))
            scheduler.tell_all(stage, facility, Random(f"{seed}:scheduler"))
            activity.tell_all(stage, facility, Random(f"{seed}:activity"))
            places.tell_all(stage, facility, Random(f"{seed}:places"))
            desk.use_sessions(stage)
            # The live simulator sends every second or two, so a minute of silence is late.
            jobs_source = IngestSource.objects.get(cluster=cluster, kind="jobs")
            telemetry_services.expect_source(actor=SYSTEM_ACTOR, source=jobs_source, every_s=60)
            _make_reports(cluster, now)
    return facility


def _make_reports(cluster: Cluster, now: datetime) -> None:
    """Draft the month; draft, approve and publish the two weeks before this one, so that the last has its changes."""
    month, week, staff = Period.month(now.year, now.month), Period.week(now.date()).previous(), person(cast.STAFF)
    report_services.build_draft(actor=SYSTEM_ACTOR, cluster=cluster, period=month)
    for period in (week.previous(), week):
        drafted = report_services.build_draft(actor=SYSTEM_ACTOR, cluster=cluster, period=period)
        report_services.approve(actor=staff, report=drafted, digest=drafted.digest)
        report_services.publish(actor=staff, report=drafted, digest=drafted.digest)

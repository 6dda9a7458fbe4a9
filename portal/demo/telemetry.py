"""The demo's sessions and jobs, as the collector and the reader of a real facility would have sent them."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from portal.demo.activity import boot_of, session_id_of
from portal.demo.drafts import SessionPlan
from portal.demo.facility import Facility
from portal.demo.history import Act, Stage
from principals.actors import SYSTEM_ACTOR
from principals.services import DeclaredSession
from telemetry import services as telemetry_services
from telemetry.engine.slurm.records import JobRecord

SOURCE = "simulate"
_HOURLY_FOR = timedelta(hours=24)  # older days arrive whole, which is quicker and looks the same


def declare_all(stage: Stage, facility: Facility) -> None:
    """Declare every session, before any job: then each job is attributed once, as it arrives."""
    telemetry_services.declare_sessions(
        actor=SYSTEM_ACTOR, cluster=stage.cluster, sessions=[declared(plan) for plan in facility.sessions],
        source=SOURCE,
    )  # fmt: skip


def declared(plan: SessionPlan) -> DeclaredSession:
    """Return a planned session as the service takes it; an agent's is known by its process, as collectors tell it."""
    return DeclaredSession(
        login=plan.login, host=plan.host, kind=plan.kind, harness=plan.harness, campaign=plan.campaign,
        started=datetime.fromtimestamp(plan.started_s, UTC), source=SOURCE,
        ended=datetime.fromtimestamp(plan.ended_s, UTC) if plan.ended_s is not None else None,
        process=f"{boot_of(plan.host)}/{session_id_of(plan)}" if plan.kind == "agent" else "",
    )  # fmt: skip


def acts(stage: Stage, facility: Facility) -> Iterator[Act]:
    """Tell what arrived when: each moment brings the jobs that ended since the last."""
    moments = _moments(stage)
    records = _by_moment(facility.records, moments)
    for moment in moments:
        yield Act(moment, partial(_arrive, stage, records[moment]))


def _moments(stage: Stage) -> list[datetime]:
    """List when something arrives: each midnight (UTC), in the last two days each hour, and now."""
    moment = stage.start.replace(hour=0, minute=0, second=0, microsecond=0)
    moments = []
    while moment < stage.now:
        is_old = moment < stage.now - _HOURLY_FOR
        moment = moment + timedelta(days=1) if is_old else moment + timedelta(hours=1)
        moments.append(min(moment, stage.now))
    return moments


def _by_moment(records: tuple[JobRecord, ...], moments: list[datetime]) -> dict[datetime, list[JobRecord]]:
    """Group records by the moment at which each is as it is: those that ended by then, the others at the last."""
    grouped: dict[datetime, list[JobRecord]] = defaultdict(list)
    edges = [moment.timestamp() for moment in moments]
    waiting = sorted(records, key=lambda record: record.end_s if record.end_s is not None else edges[-1])
    number = 0
    for record in waiting:
        while number < len(edges) - 1 and (record.end_s is None or record.end_s > edges[number]):
            number += 1
        grouped[moments[number]].append(record)
    return grouped


def _arrive(stage: Stage, records: list[JobRecord]) -> None:
    stream = telemetry_services.RecordStream(actor=SYSTEM_ACTOR, cluster=stage.cluster, source=SOURCE)
    stream.write(records)
    stream.close()

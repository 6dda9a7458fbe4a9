"""The demo's sessions and jobs, as the collector and the reader of a real facility would have sent them."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from portal.demo.drafts import SessionPlan
from portal.demo.facility import Facility
from portal.demo.history import Act, Stage
from principals.actors import SYSTEM_ACTOR
from principals.services import DeclaredSession
from telemetry import services as telemetry_services
from telemetry.engine.slurm.records import JobRecord

SOURCE = "simulate"
_HOURLY_FOR = timedelta(hours=48)  # older days arrive whole, which is quicker and looks the same


def acts(stage: Stage, facility: Facility) -> Iterator[Act]:
    """Tell what arrived when: each moment brings the sessions seen so far and the jobs that ended since the last."""
    moments = _moments(stage)
    records = _by_moment(facility.records, moments)
    last = stage.start - timedelta(days=60)
    for moment in moments:
        news = _news_of(facility.sessions, last, moment)
        yield Act(moment, partial(_arrive, stage, moment, news, records[moment]))
        last = moment


def declared(plan: SessionPlan, by: datetime) -> DeclaredSession:
    """Return a session as it was known at an instant: without an end that had not come yet."""
    ended = datetime.fromtimestamp(plan.ended_s, UTC) if plan.ended_s is not None else None
    return DeclaredSession(
        login=plan.login, host=plan.host, kind=plan.kind, harness=plan.harness, campaign=plan.campaign,
        started=datetime.fromtimestamp(plan.started_s, UTC), ended=ended if ended and ended <= by else None,
        source=SOURCE,
    )  # fmt: skip


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


def _news_of(sessions: tuple[SessionPlan, ...], last: datetime, moment: datetime) -> list[SessionPlan]:
    """List the sessions that began or ended in (last, moment]."""
    low, high = last.timestamp(), moment.timestamp()
    return [
        plan for plan in sessions
        if low < plan.started_s <= high or (plan.ended_s is not None and low < plan.ended_s <= high)
    ]  # fmt: skip


def _arrive(stage: Stage, moment: datetime, sessions: list[SessionPlan], records: list[JobRecord]) -> None:
    known = [declared(plan, moment) for plan in sessions]
    if known:
        telemetry_services.declare_sessions(
            actor=SYSTEM_ACTOR, cluster=stage.cluster, sessions=known, source=SOURCE
        )
    if records:
        stream = telemetry_services.RecordStream(actor=SYSTEM_ACTOR, cluster=stage.cluster, source=SOURCE)
        stream.write(records)
        stream.close()

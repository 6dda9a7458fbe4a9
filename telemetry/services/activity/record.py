"""Taking a batch of a collector: sessions first, then what refers to them, a bounded slice a transaction."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Any, Final, TypeVar

from django.db import transaction

from portal.core import audit, clock
from portal.core.errors import Invalid
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.engine import activity_batches as parts
from telemetry.engine.activity_batches import Batch, MinutePart, SshPart
from telemetry.engine.attribution import CLOCK_SLACK_S, OBSERVED_S
from telemetry.models import CollectorReport, DataGeneration, IngestBatch
from telemetry.services import sessions as session_services
from telemetry.services.activity import days, silence, storing
from telemetry.services.activity.judging import Judgement, Rejected
from telemetry.services.attribution import Window, attribute_pending, reattribute
from telemetry.services.sources import note_source

P = TypeVar("P")
SLICE: Final = 2000  # minutes of one transaction


@dataclass(frozen=True, slots=True)
class RecordedActivity:
    """How many parts of each list were taken, and which were not. What was sent before counts as taken."""

    accepted: dict[str, int]
    rejected: list[Rejected]


def record_activity(*, actor: Actor, cluster: Cluster, batch: Batch) -> RecordedActivity:
    """Record what a collector sends of a node; sending the same again changes nothing.

    Every part that is refused has its outcome. Sessions go the way of declared ones, so registered agents are found
    and jobs attributed. A batch that is cut short is sent again: its last transaction leaves report and audit row.
    Errors: `NotAllowed`, `Invalid`: the batch as a whole makes no sense.
    """
    permissions.require_feed(actor, "activity", cluster.name)
    _check(batch)
    judged = Judgement.of(batch, cluster)
    jobs = _take_sessions(judged)
    judged.look_up()
    changed = _take_minutes(judged)
    with transaction.atomic():
        cluster.lock()
        jobs += _take_acts(judged)
        _take_ssh(judged)
        jobs += silence.end_gone(cluster, batch)
        if jobs:
            DataGeneration.objects.start(cluster)
        _report(actor, judged, {"minutes": changed, "jobs_attributed": jobs})
    attribute_pending(cluster=cluster)
    return RecordedActivity(dict(judged.accepted), sorted(judged.rejected, key=lambda each: (each.part, each.index)))


def _check(batch: Batch) -> None:
    if not session_services.is_host(batch.host):
        raise Invalid("No node has that name.", code="host_invalid", remedy=session_services.REMEDIES["host_invalid"])
    if batch.since < session_services.EARLIEST:
        raise Invalid("The batch begins before there was Slurm.", code="past_date", remedy="Check the host's clock.")
    if batch.until < batch.since:
        raise Invalid("The batch ends before it begins.", code="end_before_start", remedy="Send times in their order.")
    if batch.until > clock.now() + parts.CLOCKS_DIFFER:
        raise Invalid("The batch ends in the future.", code="future_date", remedy="Check the host's clock.")


def _take_sessions(judged: Judgement) -> int:
    """Record the sessions; return how many jobs are attributed anew."""
    jobs, cluster = 0, judged.cluster
    numbers = {id(part): index for index, part in enumerate(judged.batch.sessions)}
    good = judged.sift("sessions", judged.batch.sessions, judged.find_session_fault)
    for some in _slices(good, session_services.SLICE):
        with transaction.atomic():
            cluster.lock()
            outcomes, changed = session_services.take_sessions(cluster, [judged.declared(part) for part in some])
        jobs += changed
        for part, outcome in zip(some, outcomes, strict=True):
            if outcome.reason:
                judged.reject("sessions", numbers[id(part)], outcome.reason)
                judged.accepted["sessions"] -= 1
            else:
                judged.know(part, outcome)
    return jobs


def _take_minutes(judged: Judgement) -> int:
    """Store the minutes and mark their days; return how many changed."""
    changed = 0
    for some in _slices(_take_once(judged), SLICE):
        with transaction.atomic():
            judged.cluster.lock()
            number, touched = storing.store_minutes(judged, some)
            days.mark_days(judged.cluster, touched)
        changed += number
    return changed


def _take_ssh(judged: Judgement) -> None:
    """Store the sums of connections by SSH, in the caller's transaction; of two of a day the second is refused."""
    seen = set[date]()

    def find_fault(part: SshPart) -> str:
        if fault := parts.find_ssh_fault(part, judged.batch, judged.now) or ("ssh_twice" if part.day in seen else ""):
            return fault
        seen.add(part.day)
        return ""

    storing.store_ssh(judged, judged.sift("ssh", judged.batch.ssh, find_fault))


def _slices(taken: Sequence[P], size: int) -> Iterator[Sequence[P]]:
    return (taken[at : at + size] for at in range(0, len(taken), size))


def _take_once(judged: Judgement) -> list[MinutePart]:
    """Return the minutes that are taken; of two rows for the same the second is refused."""
    seen = set[tuple[Any, ...]]()

    def find_fault(part: MinutePart) -> str:
        key = part.session, part.driver, part.minute, "" if part.session else part.place
        if fault := judged.find_minute_fault(part) or ("minute_twice" if key in seen else ""):
            return fault
        seen.add(key)
        return ""

    return judged.sift("minutes", judged.batch.minutes, find_fault)


def _take_acts(judged: Judgement) -> int:
    """Store submissions and loops, and give jobs to the submissions that are new; return how many jobs changed."""
    batch, now = judged.batch, judged.now
    fault = judged.find_act_fault
    submissions = judged.sift(
        "submissions", batch.submissions,
        lambda part: fault(part.session, part.at, part.at, parts.find_submission_fault(part, batch, now)),
    )  # fmt: skip
    polling = judged.sift(
        "polling", batch.polling,
        lambda part: fault(part.session, part.first, part.last, parts.find_polling_fault(part, now)),
    )  # fmt: skip
    loops = judged.sift(
        "loops", batch.loops,
        lambda part: fault(part.session, part.submitted, part.again, parts.find_loop_fault(part, now)),
    )  # fmt: skip
    storing.store_loops(judged, polling, loops)
    news = storing.store_submissions(judged, submissions)
    windows = [Window(user, at_s - CLOCK_SLACK_S, at_s + OBSERVED_S) for user, at_s in news]
    return reattribute(cluster=judged.cluster, windows=windows)


def _report(actor: Actor, judged: Judgement, changes: dict[str, int]) -> None:
    """Leave how the collector did, that it was heard, and one audit row where the batch brought something.

    One that brings nothing but how the collector did, as of a night, leaves an audit row only as its day's first.
    """
    batch, cluster = judged.batch, judged.cluster
    reasons = Counter(each.reason for each in judged.rejected)
    told = {
        "host": batch.host, "boot": batch.boot, "run": batch.run, "version": batch.collector, "mode": batch.mode,
        "study": batch.study, "since": batch.since, "until": batch.until, "received": clock.now(),
        "accepted": sum(judged.accepted.values()), "rejected": len(judged.rejected), "reasons": dict(reasons),
        **batch.health._asdict(),
    }  # fmt: skip
    report, is_new = CollectorReport.objects.get_or_create(cluster=cluster, batch=batch.batch, defaults=told)
    note_source(cluster=cluster, name=batch.host, kind=IngestBatch.Kind.ACTIVITY, newest=storing.as_of(batch.until))
    brought = any(judged.accepted.values()) or judged.rejected
    if any(changes.values()) or (is_new and (brought or _is_days_first(report))):
        audit.record(
            actor=actor.ref, verb="ingest.activity", object_kind="cluster", object_id=cluster.pk,
            object_label=cluster.name,
            after={"host": batch.host, "batch": batch.batch, "study": batch.study, **_counts(judged.accepted),
                   "rejected": dict(reasons), **changes},
        )  # fmt: skip


def _is_days_first(report: CollectorReport) -> bool:
    """Say whether a collector told of no other stretch of the UTC day yet in which this one ends."""
    begins = report.until.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    day = CollectorReport.objects.filter(
        cluster=report.cluster_id, host=report.host, until__gte=begins, until__lt=begins + timedelta(days=1)
    )
    return not day.exclude(pk=report.pk).exists()


def _counts(accepted: Counter[str]) -> dict[str, int]:
    return {f"{name}_taken": number for name, number in accepted.items()}

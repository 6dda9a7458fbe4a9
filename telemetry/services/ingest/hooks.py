"""What Slurm's hooks say, taken: each report once, each change told once, whoever spoke first.

An end that a hook tells in whole, of a job that is stored, becomes that job's record and goes the way of every record.
Any other report waits for the reader, which asks accounting about its job at once.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from django.db import transaction
from django.db.models import F, QuerySet

from portal.core import audit, clock
from principals.actors import Actor
from principals.models import Cluster
from telemetry import permissions
from telemetry.engine.slurm import hooks
from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.hooks import Report, Stored
from telemetry.engine.slurm.records import JobRecord
from telemetry.engine.transitions import WAITING_STATES
from telemetry.models import HookReport, IngestBatch, Job
from telemetry.services.ingest.chunks import write_records
from telemetry.services.ingest.feed import Feed
from telemetry.services.ingest.rows import find_fault
from telemetry.services.ingest.stored import record_of, seconds
from telemetry.services.sources import note_source

SOURCE: Final = "slurm_hooks"
PATIENCE: Final = timedelta(minutes=5)
AGAIN: Final = timedelta(seconds=0.25)  # so long after the first question the second, then twice as long each time
MOST_DUE: Final = 1000  # jobs of one round: the queue is to be looked at in between
AHEAD_S: Final = 300.0  # so much a clock may be ahead of ours
Outcome = HookReport.Outcome


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One run of a hook as it was sent: which hook, when it ran (seconds since 1970, UTC), what it said."""

    kind: str
    fired_s: float
    values: Mapping[str, str]


class HookOutcome(NamedTuple):
    """What became of an event: applied, known, waiting, duplicate, ignored or rejected, with the reason's code."""

    outcome: str
    reason: str = ""


def record_hook_events(*, actor: Actor, cluster: Cluster, events: Sequence[HookEvent]) -> list[HookOutcome]:
    """Take what hooks said; return one outcome for each event, in their order. Errors: `NotAllowed`.

    Events that were taken before, and such as Slurm told twice, change nothing.
    """
    permissions.require_feed(actor, "events", cluster.name)
    read = [_read(event) for event in events]
    reports = {hooks.digest_of(each): each for each in read if isinstance(each, Report)}
    with transaction.atomic():
        # As the reader does: what one of them writes, the other sees.
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        told = HookReport.objects.filter(cluster=cluster, digest__in=reports)
        old = set(told.values_list("digest", flat=True))
        new = {digest: report for digest, report in reports.items() if digest not in old}
        HookReport.objects.bulk_create(_row(cluster, digest, report) for digest, report in new.items())
        applied = settle(cluster, {report.job for report in new.values()})
        outcomes = dict(told.values_list("digest", "outcome"))
        results, repeated = _outcomes(read, old, outcomes)
        for digest, times in repeated.items():
            HookReport.objects.filter(cluster=cluster, digest=digest).update(repeats=F("repeats") + times)
        newest = max((report.fired_s for report in reports.values()), default=None)
        at = None if newest is None else datetime.fromtimestamp(newest, UTC)
        note_source(cluster=cluster, name=SOURCE, kind=IngestBatch.Kind.JOBS, newest=at)
        if applied:
            audit.record(
                actor=actor.ref, verb="ingest.hooks", object_kind="cluster", object_id=cluster.pk,
                object_label=cluster.name, after={"events": len(events), "applied": applied},
            )  # fmt: skip
    return results


def settle(cluster: Cluster, raw_ids: Collection[int]) -> int:
    """Decide on the reports of some jobs that wait; return how many were applied.

    Call it in a transaction that has the cluster's row locked.
    """
    waiting = list(HookReport.objects.waiting().filter(cluster=cluster, raw_id__in=raw_ids))
    if not waiting:
        return 0
    jobs = Job.objects.filter(cluster=cluster, raw_id__in={row.raw_id for row in waiting})
    rows = {(job.raw_id, int(job.submit.timestamp())): job for job in
            jobs.select_related("cluster", "cluster_user", "account", "lab")}  # fmt: skip
    stored: dict[int, dict[int, Stored]] = defaultdict(dict)
    for (raw_id, submit_s), job in rows.items():
        stored[raw_id][submit_s] = Stored(job.job_id, submit_s, job.state, seconds(job.start), seconds(job.end))
    changed: list[tuple[JobRecord, str]] = []
    # A report that says it all comes first: others may be answered by it.
    for row in sorted(waiting, key=lambda row: (not report_of(row).is_whole, row.fired)):
        report = report_of(row)
        verdict = hooks.judge(report, list(stored[report.job].values()))
        if verdict == "known":
            row.outcome = Outcome.ANSWERED if row.tries else Outcome.KNOWN
        elif verdict == "apply" and report.submit_s is not None:
            record = _ended(record_of(rows[report.job, report.submit_s]), report)
            if find_fault(record, cluster.name):
                continue  # it has a time that cannot be: accounting says which is right
            row.outcome = Outcome.APPLIED
            stored[report.job][report.submit_s] = Stored(
                record.job_id, record.submit_s, record.state, record.start_s, record.end_s
            )
            changed.append((record, report.kind))
    HookReport.objects.bulk_update([row for row in waiting if row.outcome != Outcome.WAITING], ["outcome"])
    for kind in {kind for _, kind in changed}:
        records = [record for record, told_by in changed if told_by == kind]
        write_records(_feed(cluster), records, {record.raw_job_id: kind for record in records})
    return len(changed)


def waiting_jobs(cluster: Cluster) -> dict[int, str]:
    """Return the jobs of which hooks told what waits, and which hook told of each first, of its end rather."""
    return _told_by(HookReport.objects.waiting().filter(cluster=cluster))


def due_jobs(cluster: Cluster, *, tries: int | None = None) -> dict[int, str]:
    """Return those of `waiting_jobs` that accounting is to be asked about now: less and less often, never all at once.

    `tries`: only those of which it was asked less often than that. What nobody ever answers, thousands of it too, is to
    keep the reader from nothing else.
    """
    waiting = HookReport.objects.waiting().filter(cluster=cluster)
    if tries is not None:
        waiting = waiting.filter(tries__lt=tries)
    now, due = clock.now(), dict[int, None]()
    for raw_id, asked, received in waiting.order_by("tries", "pk").values_list("raw_id", "tries", "received"):
        if len(due) < MOST_DUE and (not asked or now >= received + AGAIN * 2 ** min(asked, 16)):
            due[raw_id] = None
    return _told_by(waiting.filter(raw_id__in=due)) if due else {}


def _told_by(waiting: QuerySet[HookReport]) -> dict[int, str]:
    told = list(waiting.order_by("-fired").values_list("raw_id", "kind", "happened"))
    told.sort(key=lambda each: each[2] != HookReport.Happened.BEGAN)  # the last one of a job stays
    return {raw_id: kind for raw_id, kind, _ in told}


def settle_waiting(cluster: Cluster, jobs: Collection[int], *, asked: bool = False) -> None:
    """Decide on what waits, with what is stored by now; `asked`: accounting was just asked about these jobs.

    What it did not answer within `PATIENCE` is given up: the next sweep finds it.
    """
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        if asked:
            HookReport.objects.waiting().filter(cluster=cluster, raw_id__in=jobs).update(tries=F("tries") + 1)
        settle(cluster, jobs)
        given_up = HookReport.objects.waiting().filter(cluster=cluster, tries__gt=0)
        given_up.filter(received__lt=clock.now() - PATIENCE).update(outcome=Outcome.UNANSWERED)


def report_of(row: HookReport) -> Report:
    """Return the report that a row is of."""
    return Report(
        row.kind, row.raw_id, row.fired.timestamp(), row.happened, row.array_job_id, row.task, seconds(row.submit),  # type: ignore[arg-type]
        seconds(row.start), seconds(row.end), row.state, row.exit_code, row.exit_signal,
    )  # fmt: skip


def _read(event: HookEvent) -> Report | HookOutcome:
    try:
        report = hooks.read_report(event.kind, event.values, fired_s=event.fired_s)
    except FieldError as error:
        return HookOutcome("rejected", error.code)
    if report is None:
        return HookOutcome("ignored")
    if report.fired_s > clock.now().timestamp() + AHEAD_S:
        return HookOutcome("rejected", "future_date")
    return report


def _outcomes(
    read: Sequence[Report | HookOutcome], old: set[int], outcomes: Mapping[int, str]
) -> tuple[list[HookOutcome], dict[int, int]]:
    """Return each event's outcome, and how often each report came again."""
    results, seen, repeated = [], set(old), defaultdict[int, int](int)
    for each in read:
        if isinstance(each, HookOutcome):
            results.append(each)
            continue
        digest = hooks.digest_of(each)
        if digest in seen:
            repeated[digest] += 1
        results.append(HookOutcome("duplicate" if digest in seen else outcomes[digest]))
        seen.add(digest)
    return results, repeated


def _row(cluster: Cluster, digest: int, report: Report) -> HookReport:
    return HookReport(
        cluster=cluster, digest=digest, kind=report.kind, happened=report.happened, raw_id=report.job,
        array_job_id=report.array_job, task=report.task, submit=report.submit_s, start=report.start_s,
        end=report.end_s, state=report.state, exit_code=min(report.exit_code, 2**31 - 1),
        exit_signal=min(report.exit_signal, 2**31 - 1), fired=datetime.fromtimestamp(report.fired_s, UTC),
        outcome=Outcome.WAITING,
    )  # fmt: skip


def _ended(record: JobRecord, report: Report) -> JobRecord:
    """Return a record with the end that a report tells of. How long it was suspended accounting will say."""
    start_s = report.start_s if report.start_s is not None else record.start_s
    ran_s = max(0, report.end_s - start_s) if report.end_s is not None and start_s is not None else 0
    return record._replace(
        state=report.state, start_s=start_s, end_s=report.end_s, elapsed_s=ran_s, started=start_s is not None,
        exit_code=report.exit_code, exit_signal=report.exit_signal,
        reason="" if record.state in WAITING_STATES else record.reason,  # why it waited is no reason of its end
    )  # fmt: skip


def _feed(cluster: Cluster) -> Feed:
    """Return a feed without a batch: what a hook changed of a job, its report's row tells."""
    batch = IngestBatch(cluster=cluster, source=SOURCE)
    return Feed(batch, cluster, clock.now(), group_is_lab=False)

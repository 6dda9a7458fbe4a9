"""What is kept for a while only: rows set aside, bodies nobody reads again, what nodes, gateways and harnesses told."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from portal.core import clock
from principals.models import AgentSession
from telemetry.models import (
    ActivityDay,
    ActivityMinute,
    ActivitySubmission,
    ArrayTold,
    CollectorReport,
    ExperimentLoop,
    GatewayDay,
    GatewayMinute,
    HarnessDay,
    HarnessReading,
    HookReport,
    IngestBatch,
    IngestGap,
    IngestPayload,
    JobGpu,
    JobOutput,
    PollingLoop,
    QuarantinedRow,
    QueueSheet,
    ShimUse,
    SlurmReader,
    SshDay,
)
from telemetry.services.activity.days import oldest_day_kept
from telemetry.services.ingest import withdraw_mistyped

QUARANTINE_KEPT: Final = timedelta(days=30)
# A body comes as it was sent, before anything is redacted; a batch that failed keeps it so that it can be tried again.
PAYLOAD_KEPT: Final = timedelta(days=7)
GPU_WAITS: Final = timedelta(days=30)  # a reading whose job nobody ever told of
HOOKS_KEPT: Final = timedelta(days=7)  # as long as the events that they made
SHEETS_KEPT: Final = timedelta(days=1)  # of a queue that no reader looks at any more; the reader keeps the others
OUTPUTS_KEPT: Final = timedelta(days=1)  # of jobs that left the queue: by then their end is told
GAPS_KEPT: Final = timedelta(days=90)
# Of collectors: they say when a node was watched, so last month's figures need them until long after it.
REPORTS_KEPT: Final = timedelta(days=100)
SESSIONS_KEPT: Final = timedelta(days=400)  # that a collector saw, with their submissions and loops: a year and a month
DAYS_KEPT: Final = timedelta(days=3 * 365)
_MANY: Final = 1000  # small rows a transaction
_CHUNK: Final = 50  # a piece of a body is up to a megabyte, and SQLite has one writer


def prune() -> dict[str, int]:
    """Delete quarantined rows, left bodies, readings without a job, gaps and clusters that never were, past their time.

    And what collectors, gateways and harnesses told: minutes first, then sessions with what they submitted, their daily
    sums last. Return how many. Counts of batches stay.
    """
    now = clock.now()
    ended = (IngestBatch.State.DONE, IngestBatch.State.FAILED)
    return {
        "quarantined": _delete(QuarantinedRow.objects.filter(at__lt=now - QUARANTINE_KEPT)),
        "payloads": _delete(
            IngestPayload.objects.filter(batch__state__in=ended, batch__finished__lt=now - PAYLOAD_KEPT)
        ),
        "gpu_readings": _delete(JobGpu.objects.filter(job__isnull=True, received__lt=now - GPU_WAITS)),
        "gaps": _delete(IngestGap.objects.filter(until__lt=now - GAPS_KEPT)),
        "hook_reports": _delete(HookReport.objects.filter(received__lt=now - HOOKS_KEPT), _MANY),
        "arrays_told": _delete(ArrayTold.objects.filter(is_owed=False, told__lt=now - HOOKS_KEPT), _MANY),
        "job_outputs": _delete(JobOutput.objects.filter(left__lt=now - OUTPUTS_KEPT), _MANY),
        "queue_sheets": _delete(
            QueueSheet.objects.exclude(
                cluster_user__cluster__in=SlurmReader.objects.filter(shown__gte=now - SHEETS_KEPT).values("cluster")
            ),
            _MANY,
        ),
        "shim_uses": _delete(ShimUse.objects.filter(day__lt=(now - DAYS_KEPT).date()), _MANY),
        "clusters": withdraw_mistyped(),
    } | _prune_activity(now)


def _prune_activity(now: datetime) -> dict[str, int]:
    midnight = clock.midnight(oldest_day_kept())  # whole days: of a part nothing could be added up
    before = now - SESSIONS_KEPT
    told = ~Q(process="") | Q(place=AgentSession.Place.GATEWAY)  # and not declared
    sessions = AgentSession.objects.filter(told).alias(over=Coalesce("ended", "last_seen", "started"))
    return {
        "minutes": _delete(ActivityMinute.objects.filter(minute__lt=midnight), _MANY),
        "reports": _delete(CollectorReport.objects.filter(until__lt=now - REPORTS_KEPT), _MANY),
        "submissions": _delete(ActivitySubmission.objects.filter(at__lt=before), _MANY),
        "polling_loops": _delete(PollingLoop.objects.filter(last__lt=before), _MANY),
        "experiment_loops": _delete(ExperimentLoop.objects.filter(again__lt=before), _MANY),
        "sessions": _delete(sessions.filter(over__lt=before)),
        "gateway_minutes": _delete(GatewayMinute.objects.filter(minute__lt=midnight), _MANY),
        "gateway_days": _delete(GatewayDay.objects.filter(day__lt=(now - DAYS_KEPT).date()), _MANY),
        "ssh_days": _delete(SshDay.objects.filter(day__lt=(now - DAYS_KEPT).date()), _MANY),
        "activity_days": _delete(ActivityDay.objects.filter(day__lt=(now - DAYS_KEPT).date()), _MANY),
        # What harnesses told goes as what collectors told does: readings with minutes, days with days.
        "harness_readings": _delete(HarnessReading.objects.filter(at__lt=midnight), _MANY),
        "harness_days": _delete(HarnessDay.objects.filter(day__lt=(now - DAYS_KEPT).date()), _MANY),
    }


def _delete(rows: QuerySet[Any], chunk: int = _CHUNK) -> int:
    """Delete rows some at a time; return how many there were, what goes with them not counted."""
    total = 0
    while ids := list(rows.order_by("pk").values_list("pk", flat=True)[:chunk]):
        rows.model._default_manager.filter(pk__in=ids).delete()
        total += len(ids)
    return total

"""Verbs of `telemetry`, called through this module: `telemetry_services.ingest_file(actor=…, …)`."""

from telemetry.services.activity import (
    RecordedActivity,
    end_silent_sessions,
    end_study,
    record_activity,
    refresh_activity,
    start_study,
)
from telemetry.services.attribution import note_adopted, sweep_attributions
from telemetry.services.gateways import Asked, GatewaySummary, import_gateway_log
from telemetry.services.gpu import (
    FileSummary,
    GpuOutcome,
    import_gpu_file,
    match_gpu_utilisation,
    record_gpu_utilisation,
)
from telemetry.services.gpu_rollups import refresh as refresh_gpu_rollups
from telemetry.services.harness import (
    Taken,
    choose_harness_telemetry,
    expect_harness_telemetry,
    record_logs,
    record_metrics,
    refresh_harness_days,
)
from telemetry.services.harness import is_allowed as is_harness_telemetry_allowed
from telemetry.services.ingest import (
    HookEvent,
    HookOutcome,
    Progress,
    RecordStream,
    accept_upload,
    can_retry,
    count_reasons,
    describe_others,
    feed_cluster,
    ingest_file,
    record_hook_events,
    require_cluster,
    retry_batch,
    run_batch,
    sweep,
    tell_owed,
    withdraw_cluster,
)
from telemetry.services.job_indexes import build_missing
from telemetry.services.reader import Commands, PySlurm, Reader, SlurmUnavailable, hold_reader, serve
from telemetry.services.receipts import note_receipt, request_receipt
from telemetry.services.retention import prune
from telemetry.services.rollups import catch_up, mark_dirty, refresh
from telemetry.services.scheduler_calls import add_calls
from telemetry.services.sessions import Declared, SessionOutcome, declare_sessions
from telemetry.services.shims import answer_shared
from telemetry.services.shims import note_use as note_shim_use
from telemetry.services.sources import expect_source, note_source

__all__ = [
    "Asked",
    "Commands",
    "Declared",
    "FileSummary",
    "GatewaySummary",
    "GpuOutcome",
    "HookEvent",
    "HookOutcome",
    "Progress",
    "PySlurm",
    "Reader",
    "RecordStream",
    "RecordedActivity",
    "SessionOutcome",
    "SlurmUnavailable",
    "Taken",
    "accept_upload",
    "add_calls",
    "answer_shared",
    "build_missing",
    "can_retry",
    "catch_up",
    "choose_harness_telemetry",
    "count_reasons",
    "declare_sessions",
    "describe_others",
    "end_silent_sessions",
    "end_study",
    "expect_harness_telemetry",
    "expect_source",
    "feed_cluster",
    "hold_reader",
    "import_gateway_log",
    "import_gpu_file",
    "ingest_file",
    "is_harness_telemetry_allowed",
    "mark_dirty",
    "match_gpu_utilisation",
    "note_adopted",
    "note_receipt",
    "note_shim_use",
    "note_source",
    "prune",
    "record_activity",
    "record_gpu_utilisation",
    "record_hook_events",
    "record_logs",
    "record_metrics",
    "refresh",
    "refresh_activity",
    "refresh_gpu_rollups",
    "refresh_harness_days",
    "request_receipt",
    "require_cluster",
    "retry_batch",
    "run_batch",
    "serve",
    "start_study",
    "sweep",
    "sweep_attributions",
    "tell_owed",
    "withdraw_cluster",
]

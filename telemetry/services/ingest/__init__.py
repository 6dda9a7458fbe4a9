"""How job records come in: one path for the command, the API, readers and the simulator."""

from telemetry.services.ingest.arrays import tell_owed
from telemetry.services.ingest.files import ingest_file
from telemetry.services.ingest.hooks import HookEvent, HookOutcome, record_hook_events
from telemetry.services.ingest.mistyped import feed_cluster, require_cluster, withdraw_cluster, withdraw_mistyped
from telemetry.services.ingest.quarantine import count_reasons, describe_others
from telemetry.services.ingest.retrying import can_retry, retry_batch
from telemetry.services.ingest.running import Progress
from telemetry.services.ingest.streams import RecordStream
from telemetry.services.ingest.uploads import accept_upload, run_batch, sweep

__all__ = [
    "HookEvent",
    "HookOutcome",
    "Progress",
    "RecordStream",
    "accept_upload",
    "can_retry",
    "count_reasons",
    "describe_others",
    "feed_cluster",
    "ingest_file",
    "record_hook_events",
    "require_cluster",
    "retry_batch",
    "run_batch",
    "sweep",
    "tell_owed",
    "withdraw_cluster",
    "withdraw_mistyped",
]

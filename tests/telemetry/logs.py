"""Sacct text for tests of ingest: rows of the engine's tests, with instants near now where news matters."""

import io
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.engine.slurm.records import Outcome
from telemetry.models import IngestBatch, Job
from tests.telemetry.engine.sacct_texts import many_rows, row, text

# What `scontrol show config` prints of the cluster that the tests read, in part.
CONFIG = (
    "Configuration data as of 2026-07-02T00:00:00\nClusterName             = aster\nSLURM_VERSION           = 25.11.7\n"
)
# What a job is, wherever it came from: for "the same result as".
FACTS = (
    "raw_id", "submit", "job_id", "cluster_user__login", "lab__name", "state", "start", "end", "usage_end", "actor",
    "harness", "actor_method", "campaign", "digest", "job_name", "submit_line",
)  # fmt: skip


def ingest(cluster: Cluster, body: bytes, format: str = "sacct", **kwargs: Any) -> IngestBatch:
    """Ingest a body in this process."""
    return services.ingest_file(actor=SYSTEM_ACTOR, cluster=cluster, stream=io.BytesIO(body), format=format, **kwargs)


def stream_records(cluster: Cluster, records: Iterable[Outcome], *, source: str = "test") -> IngestBatch:
    """Store records as a reader does; return their batch, done."""
    sent = services.RecordStream(actor=SYSTEM_ACTOR, cluster=cluster, source=source)
    sent.write(list(records))
    batch = sent.batch
    assert batch is not None
    sent.close()
    return batch


def job_row(number: int, **values: str) -> str:
    """One good row with a job number."""
    return row(**{"JobID": str(number), "JobIDRaw": str(number)} | values)


def iso(ago_s: int) -> str:
    """The instant so many seconds ago, as sacct writes it."""
    return datetime.fromtimestamp(clock.now_s() - ago_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def live_row(number: int, state: str, *, ago_s: int = 60, **values: str) -> str:
    """A row of a job submitted so long ago: PENDING, RUNNING since then, or ended now."""
    started = state != "PENDING"
    ended = state not in ("PENDING", "RUNNING")
    elapsed = f"00:{ago_s // 60:02}:{ago_s % 60:02}"
    times = {
        "Submit": iso(ago_s), "Eligible": iso(ago_s), "Start": iso(ago_s) if started else "Unknown",
        "End": iso(0) if ended else "Unknown", "Elapsed": elapsed if started else "00:00:00", "State": state,
    }  # fmt: skip
    return job_row(number, **times | values)


def many(count: int, *, seed: int = 1) -> bytes:
    """A file of many jobs."""
    return b"".join(many_rows(count, seed=seed))


def facts(cluster: Cluster) -> list[tuple[Any, ...]]:
    """Every job of a cluster, as facts in a fixed order."""
    return list(Job.objects.filter(cluster=cluster).order_by("raw_id", "submit").values_list(*FACTS))


def counts(batch: IngestBatch) -> dict[str, int]:
    """The outcomes of a batch that are not 0."""
    names = ("created", "updated", "duplicate", "late", "rejected", "step")
    return {name: number for name in names if (number := getattr(batch, f"{name}_rows"))}


__all__ = ["counts", "facts", "ingest", "iso", "job_row", "live_row", "many", "row", "text"]

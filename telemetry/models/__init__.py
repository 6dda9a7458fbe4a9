"""Rows of `telemetry`: jobs, what was ingested and how, and the rollups that every figure is made of."""

from telemetry.models.ingest import (
    IngestBatch,
    IngestPayload,
    IngestSource,
    QuarantinedRow,
    SchedulerCalls,
    SlurmReader,
)
from telemetry.models.inventory import InventoryReading, Node, Partition, Qos
from telemetry.models.jobs import ACTIVE_STATES, Actor, Job, JobState, PendingAttribution
from telemetry.models.rollups import RollupDay, RollupDirty, RollupHour, RollupRuntime

__all__ = [
    "ACTIVE_STATES",
    "Actor",
    "IngestBatch",
    "IngestPayload",
    "IngestSource",
    "InventoryReading",
    "Job",
    "JobState",
    "Node",
    "Partition",
    "PendingAttribution",
    "Qos",
    "QuarantinedRow",
    "RollupDay",
    "RollupDirty",
    "RollupHour",
    "RollupRuntime",
    "SchedulerCalls",
    "SlurmReader",
]

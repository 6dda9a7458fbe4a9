"""Rows of `telemetry`: jobs and their GPUs, what was ingested and how, and the rollups that figures are made of."""

from telemetry.models.activity import (
    ActivityDay,
    ActivityDirty,
    ActivityMinute,
    ActivitySubmission,
    ExperimentLoop,
    PollingLoop,
)
from telemetry.models.array_news import ArrayTold
from telemetry.models.collectors import BaselineStudy, CollectorReport, SshDay
from telemetry.models.gateways import Gateway, GatewayDay, GatewayMinute
from telemetry.models.gpu import JobGpu, JobGpuUse
from telemetry.models.gpu_rollups import RollupGpu, RollupGpuDirty
from telemetry.models.harness import HarnessChoice, HarnessDay, HarnessReading
from telemetry.models.hooks import HookReport
from telemetry.models.ingest import (
    IngestBatch,
    IngestGap,
    IngestPayload,
    IngestSource,
    QuarantinedRow,
    SchedulerCalls,
    SlurmReader,
)
from telemetry.models.inventory import InventoryReading, Node, Partition, Qos
from telemetry.models.job_outputs import JobOutput
from telemetry.models.jobs import Actor, Job, JobState, PendingAttribution
from telemetry.models.queue_sheets import QueueSheet, ShimUse
from telemetry.models.receipts import JobReceipt
from telemetry.models.rollups import (
    DataGeneration,
    RollupDay,
    RollupDirty,
    RollupHistogram,
    RollupHour,
    RollupUser,
)

__all__ = [
    "ActivityDay",
    "ActivityDirty",
    "ActivityMinute",
    "ActivitySubmission",
    "Actor",
    "ArrayTold",
    "BaselineStudy",
    "CollectorReport",
    "DataGeneration",
    "ExperimentLoop",
    "Gateway",
    "GatewayDay",
    "GatewayMinute",
    "HarnessChoice",
    "HarnessDay",
    "HarnessReading",
    "HookReport",
    "IngestBatch",
    "IngestGap",
    "IngestPayload",
    "IngestSource",
    "InventoryReading",
    "Job",
    "JobGpu",
    "JobGpuUse",
    "JobOutput",
    "JobReceipt",
    "JobState",
    "Node",
    "Partition",
    "PendingAttribution",
    "PollingLoop",
    "Qos",
    "QuarantinedRow",
    "QueueSheet",
    "RollupDay",
    "RollupDirty",
    "RollupGpu",
    "RollupGpuDirty",
    "RollupHistogram",
    "RollupHour",
    "RollupUser",
    "SchedulerCalls",
    "ShimUse",
    "SlurmReader",
    "SshDay",
]

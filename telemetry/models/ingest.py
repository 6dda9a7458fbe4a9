"""What was sent, what became of each record, and how each source does."""

import uuid
from typing import Self

from django.db import models
from django.urls import reverse

from portal.core import clock
from portal.core.actors import ActorRef
from portal.core.fields import EpochField
from principals.actors import Actor
from principals.models import Cluster, ClusterUser


class IngestBatchQuerySet(models.QuerySet["IngestBatch"]):
    """Batches, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff see all; a service those it sent."""
        if actor.sees_facility:
            return self
        return self.sent_by_actor(actor) if actor.service else self.none()

    def sent_by_actor(self, actor: Actor) -> Self:
        """Those that this very principal sent: a person and a service may have one name."""
        return self.filter(sender_kind=actor.ref.kind, sender_id=actor.ref.id)


class IngestBatch(models.Model):
    """A file or a request with records. Its work is this row: queued → running under a lease → done or failed.

    Work commits in chunks; `offset` and `line` stand after the last committed one, so an interrupted batch goes on
    from there. Each record ends in exactly one of the outcomes counted here.
    """

    class Kind(models.TextChoices):
        JOBS = "jobs", "Jobs"
        SESSIONS = "sessions", "Sessions"
        FINDINGS = "findings", "Findings"
        GPU = "gpu", "GPU use"
        ACTIVITY = "activity", "Login-node activity"
        GATEWAY = "gateway", "Gateway requests"

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.JOBS)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="batches")
    source = models.CharField(max_length=64)  # who read it: file, api, simulate, reader …
    name = models.CharField(max_length=200, default="", blank=True)  # the file's name, never its path
    format = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, default="", blank=True)  # sha256 of the whole, where known before
    sender_kind = models.CharField(max_length=16)
    sender_id = models.CharField(max_length=64)
    sent_by = models.CharField(max_length=150)  # the sender's name then, to be shown
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    error = models.CharField(max_length=500, default="", blank=True)
    created = models.DateTimeField(default=clock.now)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)

    bytes_total = models.BigIntegerField(null=True, blank=True)
    offset = models.BigIntegerField(default=0)
    line = models.BigIntegerField(default=0)
    header = models.TextField(default="", blank=True)

    created_rows = models.BigIntegerField(default=0)
    updated_rows = models.BigIntegerField(default=0)
    duplicate_rows = models.BigIntegerField(default=0)
    late_rows = models.BigIntegerField(default=0)  # older than what is known of the job
    rejected_rows = models.BigIntegerField(default=0)
    step_rows = models.BigIntegerField(default=0)
    redactions = models.BigIntegerField(default=0)

    objects = IngestBatchQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "created"], name="telemetry_batch_created"),
            models.Index(fields=["state", "leased_until"], name="telemetry_batch_state"),
            models.Index(fields=["digest"], name="telemetry_batch_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} from {self.source} ({self.state})"

    def get_absolute_url(self) -> str:
        return reverse("ingest-batch", kwargs={"public_id": self.public_id})

    @property
    def sender(self) -> ActorRef:
        """Who sent it, as its audit rows name them; the sender's own row may be gone."""
        return ActorRef(kind=self.sender_kind, id=self.sender_id, label=self.sent_by)

    @property
    def accepted_rows(self) -> int:
        return self.created_rows + self.updated_rows

    @property
    def total_rows(self) -> int:
        """Every record seen, whatever became of it."""
        return self.accepted_rows + self.duplicate_rows + self.late_rows + self.rejected_rows + self.step_rows


class IngestPayload(models.Model):
    """A piece of a posted body, kept in the database so that a worker on any host can read it; gone once done."""

    batch = models.ForeignKey(IngestBatch, on_delete=models.CASCADE, related_name="payload")
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "number"], name="telemetry_payload_number")]

    def __str__(self) -> str:
        return f"piece {self.number} of batch {self.batch_id}"


class QuarantinedRow(models.Model):
    """A record that was not taken, why, and what it said (redacted, cut at 2,000 characters)."""

    batch = models.ForeignKey(IngestBatch, on_delete=models.CASCADE, related_name="quarantined")
    line = models.BigIntegerField()
    reason = models.CharField(max_length=40)
    detail = models.CharField(max_length=300, default="", blank=True)
    raw = models.TextField(default="", blank=True)
    at = models.DateTimeField(default=clock.now)

    class Meta:
        indexes = [
            models.Index(fields=["batch", "line"], name="telemetry_quarantine_batch"),
            models.Index(fields=["reason", "at"], name="telemetry_quarantine_reason"),
        ]

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class IngestSource(models.Model):
    """A source that feeds a cluster's telemetry, and when it was last heard."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="sources")
    name = models.CharField(max_length=64)
    kind = models.CharField(max_length=8, choices=IngestBatch.Kind.choices)
    expected_every_s = models.PositiveIntegerField(null=True, blank=True)  # null: it comes when it comes
    last_received = models.DateTimeField(null=True, blank=True)
    last_record_at = models.DateTimeField(null=True, blank=True)  # newest instant any of its records speaks of

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "name", "kind"], name="telemetry_ingestsource_name")]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


class IngestGap(models.Model):
    """A silence of a source, longer than it is expected to be: from its last word to the next."""

    source = models.ForeignKey(IngestSource, on_delete=models.CASCADE, related_name="gaps")
    since = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "since"], name="telemetry_ingestgap_since")]
        indexes = [models.Index(fields=["until"], name="telemetry_ingestgap_until")]

    def __str__(self) -> str:
        return f"silent from {self.since} to {self.until}"


class SlurmReader(models.Model):
    """How far the reader of a cluster is: one row a cluster, written by whoever holds its lease."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="reader")
    looked = models.DateTimeField(null=True, blank=True)  # at the queue, last
    shown = EpochField(null=True, blank=True)  # when squeue was asked for what `QueueSheet` holds
    swept_until = models.DateTimeField(null=True, blank=True)  # accounting is read up to here
    deep_swept = models.DateTimeField(null=True, blank=True)  # two days back, last
    unsettled = models.PositiveIntegerField(default=0)  # jobs of which accounting does not know yet what the queue says
    given_up = models.PositiveIntegerField(default=0)  # jobs of which accounting never knew, since `counted`
    calls = models.BigIntegerField(default=0)  # asked of slurmctld and slurmdbd, since `counted`
    busy_s = models.FloatField(default=0.0)  # how long they took to answer
    counted = models.DateTimeField(default=clock.now)
    counters = models.JSONField(default=dict, blank=True)  # of sdiag at the last count: {login: [calls, busy_us]}
    counters_since = models.BigIntegerField(null=True, blank=True)  # when they started, UTC epoch seconds
    counters_read = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=300, default="", blank=True)  # why the last call was in vain; "" where not

    def __str__(self) -> str:
        return f"reader of {self.cluster_id}"

    @property
    def calls_a_minute(self) -> float:
        """What it asks of the scheduler's daemons, on average since `counted`."""
        return self.calls / max(1.0, (clock.now() - self.counted).total_seconds() / 60)

    @property
    def answer_ms(self) -> float | None:
        """How long the daemons take to answer, on average; None before the first call."""
        return 1000 * self.busy_s / self.calls if self.calls else None


class SchedulerCalls(models.Model):
    """What a user asked of the controller on one UTC day, by every command and library: sdiag(1), by user."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    cluster_user = models.ForeignKey(ClusterUser, on_delete=models.CASCADE, related_name="+", db_index=False)
    calls = models.BigIntegerField(default=0)
    busy_us = models.BigIntegerField(default=0)  # how long the controller worked on them

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "day", "cluster_user"], name="telemetry_schedulercalls_key")
        ]

    def __str__(self) -> str:
        return f"{self.calls} calls on {self.day}"

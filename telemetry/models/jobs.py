"""Jobs as Slurm accounts for them, with who is taken to have submitted them."""

from typing import Final, Self

from django.db import models
from django.db.models import Case, ExpressionWrapper, F, Q, Value, When
from django.urls import reverse

from portal.core import clock
from portal.core.fields import EpochField
from principals.actors import Actor as Principal
from principals.models import Agent, AgentSession, Cluster, ClusterUser, Lab, SlurmAccount


class JobState(models.TextChoices):
    """Base states of Slurm (squeue(1), sacct(1) "JOB STATE CODES")."""

    PENDING = "PENDING", "Pending"
    RUNNING = "RUNNING", "Running"
    SUSPENDED = "SUSPENDED", "Suspended"
    CONFIGURING = "CONFIGURING", "Configuring"
    COMPLETING = "COMPLETING", "Completing"
    REQUEUED = "REQUEUED", "Requeued"
    RESIZING = "RESIZING", "Resizing"
    COMPLETED = "COMPLETED", "Completed"
    FAILED = "FAILED", "Failed"
    CANCELLED = "CANCELLED", "Cancelled"
    TIMEOUT = "TIMEOUT", "Timeout"
    OUT_OF_MEMORY = "OUT_OF_MEMORY", "Out of memory"
    NODE_FAIL = "NODE_FAIL", "Node failure"
    BOOT_FAIL = "BOOT_FAIL", "Boot failure"
    DEADLINE = "DEADLINE", "Deadline"
    PREEMPTED = "PREEMPTED", "Preempted"
    REVOKED = "REVOKED", "Revoked"


class Actor(models.TextChoices):
    """Who is taken to have submitted a job."""

    AGENT = "agent", "Agent"
    HUMAN = "human", "People"
    UNKNOWN = "unknown", "Not attributed"


LONG_S: Final = 2 * 86_400  # a job that held its nodes for longer is long
_LONG_SINCE: Final = ExpressionWrapper(F("start") + LONG_S, output_field=models.BigIntegerField())


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs, as somebody may see them."""

    def visible_to(self, actor: Principal) -> Self:
        """Staff see all; PIs and managers their labs' jobs; a person, and an agent, those of its own login names.

        An agent whose token carries `lab:read` sees its lab's jobs too, with other people's names left out at the edge.
        """
        if actor.sees_facility:
            return self
        if actor.user is None:
            return self.none()
        # As numbers: through a join no index would be found for the two halves of it.
        own = list(ClusterUser.objects.filter(user=actor.user).values_list("pk", flat=True))
        return self.filter(Q(cluster_user__in=own) | Q(lab_id__in=actor.visible_lab_ids))

    def active(self) -> Self:
        """Those that Slurm still holds in its queue."""
        return self.filter(end=None)


class Job(models.Model):
    """One record of sacct(1) that is not a step: the key is (cluster, raw job id, submit time), for ids recycle.

    Its keys have no constraint in the database: nothing that a job points at is deleted but through Django, and
    PostgreSQL's six checks a row took two fifths of the time of a large load.

    `end` is null until Slurm closes the record, and only until then: such a job is active, whatever its state is.
    `usage_end` is the end, or for a running job the instant it was last seen running: until there it has used its
    cores. Times are Slurm's, whole seconds; `changed` is ours.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="jobs", db_index=False, db_constraint=False
    )
    raw_id = models.BigIntegerField()
    submit = EpochField()
    job_id = models.CharField(max_length=64)  # as people write it: 123, 123_4, 123_[5-9], 123+1
    array_job_id = models.BigIntegerField(null=True, blank=True)
    array_tasks = models.PositiveIntegerField(default=1)  # tasks that this one record stands for

    cluster_user = models.ForeignKey(
        ClusterUser, on_delete=models.CASCADE, related_name="jobs", db_index=False, db_constraint=False
    )
    account = models.ForeignKey(
        SlurmAccount,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    lab = models.ForeignKey(Lab, on_delete=models.PROTECT, related_name="jobs", db_index=False, db_constraint=False)
    partition = models.CharField(max_length=64, default="", blank=True)
    qos = models.CharField(max_length=64, default="", blank=True)

    state = models.CharField(max_length=16, choices=JobState.choices)
    reason = models.CharField(max_length=100, default="", blank=True)
    eligible = EpochField(null=True, blank=True)
    start = EpochField(null=True, blank=True)
    end = EpochField(null=True, blank=True)
    usage_end = EpochField(null=True, blank=True)
    # Most jobs that ran on a day ended on it or soon after: an index finds those. The few long ones have their own.
    is_long = models.GeneratedField(
        expression=Case(When(usage_end__gt=_LONG_SINCE, then=Value(True)), default=Value(False)),
        output_field=models.BooleanField(),
        db_persist=True,
    )
    elapsed_s = models.BigIntegerField(default=0)
    timelimit_s = models.BigIntegerField(null=True, blank=True)
    nodes = models.PositiveIntegerField(default=0)
    cpus = models.PositiveIntegerField(default=0)
    gpus = models.PositiveIntegerField(default=0)
    mem_bytes = models.BigIntegerField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    exit_signal = models.IntegerField(null=True, blank=True)
    cancelled_by_uid = models.BigIntegerField(null=True, blank=True)
    restarts = models.PositiveIntegerField(default=0)

    job_name = models.TextField(default="", blank=True)
    node_list = models.TextField(default="", blank=True)
    submit_line = models.TextField(default="", blank=True)  # redacted before it is stored
    work_dir = models.TextField(default="", blank=True)
    campaign = models.CharField(max_length=100, default="", blank=True)
    extra = models.JSONField(default=dict, blank=True)  # columns we do not know, kept

    actor = models.CharField(max_length=8, choices=Actor.choices, default=Actor.UNKNOWN)
    actor_method = models.CharField(max_length=40, default="none")
    actor_confidence = models.FloatField(default=0.0)
    harness = models.CharField(max_length=32, default="", blank=True)
    session = models.ForeignKey(
        AgentSession,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="jobs",
        db_index=False,
        db_constraint=False,
    )
    # The registered agent that it is taken to be of: the receipt's that it names, else the session's.
    agent = models.ForeignKey(
        Agent,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="jobs",
        db_index=False,
        db_constraint=False,
    )

    digest = models.BigIntegerField()  # of the record as it came: equal digests mean nothing changed
    changed = EpochField()
    batch = models.ForeignKey(
        "IngestBatch", on_delete=models.SET_NULL, null=True, related_name="+", db_index=False, db_constraint=False
    )

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "raw_id", "submit"], name="telemetry_job_key")]
        indexes = [
            models.Index(fields=["cluster_user", "usage_end"], name="telemetry_job_user_end"),
            models.Index(fields=["cluster_user", "submit"], name="telemetry_job_user_submit"),
            models.Index(fields=["cluster", "usage_end"], name="telemetry_job_cluster_end"),
            models.Index(fields=["cluster", "submit"], name="telemetry_job_cluster_submit"),
            models.Index(fields=["cluster", "changed"], name="telemetry_job_changed"),
            models.Index(fields=["lab", "submit"], name="telemetry_job_lab_submit"),
            # The end leads to it without statistics, too: SQLite would take another index of the cluster.
            models.Index(fields=["cluster", "end"], name="telemetry_job_active", condition=Q(end=None)),
            models.Index(fields=["cluster", "usage_end"], name="telemetry_job_long", condition=Q(is_long=True)),
            models.Index(fields=["cluster", "usage_end"], name="telemetry_job_gpus", condition=Q(gpus__gt=0)),
            models.Index(fields=["session"], name="telemetry_job_session", condition=Q(session__isnull=False)),
            models.Index(fields=["agent", "submit"], name="telemetry_job_agent", condition=Q(agent__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} on {self.cluster_id}"

    def get_absolute_url(self) -> str:
        return reverse("job", kwargs={"pk": self.pk})

    @property
    def comment(self) -> str:
        """What its submitter said by `sbatch --comment`: receipts stand there."""
        return str(self.extra.get("Comment", ""))

    @property
    def is_active(self) -> bool:
        """Say whether Slurm still holds it in its queue."""
        return self.end is None

    @property
    def wait_s(self) -> int | None:
        """Seconds from submit to start, or to now while it waits; None where it never started."""
        if self.start is not None:
            return int((self.start - self.submit).total_seconds())
        return int((clock.now() - self.submit).total_seconds()) if self.state == JobState.PENDING else None


class PendingAttribution(models.Model):
    """Jobs of a login name that a session may explain, still to be looked at: written with the session.

    Those submitted from `first` to `last` (without end where null), both inclusive, with an id above `after_id`.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    cluster_user = models.ForeignKey(ClusterUser, on_delete=models.CASCADE, related_name="+")
    first = EpochField()
    last = EpochField(null=True, blank=True)
    after_id = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.cluster_user_id} from {self.first}"

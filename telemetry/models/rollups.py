"""Rollups: recomputed for what a batch touched, never incremented, so that sending anything twice changes nothing.

Their keys have no constraint in the database, as those of jobs: the refresher alone writes them, from jobs, and a check
of each key of each row is most of what PostgreSQL does meanwhile.
"""

from typing import Any, Self

from django.db import models
from django.db.models import F, Q

from portal.core.fields import EpochField
from principals.actors import Actor as Principal
from principals.models import Cluster, ClusterUser, Lab
from telemetry.models.jobs import Actor


class DailyQuerySet(models.QuerySet[Any]):
    """Daily rollups, as somebody may see them."""

    def visible_to(self, actor: Principal) -> Self:
        """As jobs are: staff all, PIs and managers their labs', others their own."""
        if actor.sees_facility:
            return self
        if actor.user is None:
            return self.none()
        return self.filter(Q(cluster_user__user=actor.user) | Q(lab_id__in=actor.visible_lab_ids))


class DaySums(models.Model):
    """What one user did on one UTC day in one lab, as one actor with one harness.

    Seconds are each job's elapsed time within the day (spread evenly over its span where it was suspended).
    Submissions count on the day of submit; everything named `ended_…`, the waits and the runtime histogram count a
    job once, on the day it ended. A record that stands for several array tasks counts as that many.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    cluster_user = models.ForeignKey(
        ClusterUser, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    lab = models.ForeignKey(Lab, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False)
    actor = models.CharField(max_length=8, choices=Actor.choices)
    harness = models.CharField(max_length=32, default="", blank=True)

    wall_s = models.BigIntegerField(default=0)
    core_s = models.BigIntegerField(default=0)
    node_s = models.BigIntegerField(default=0)
    gpu_s = models.BigIntegerField(default=0)
    submissions = models.BigIntegerField(default=0)

    ended = models.BigIntegerField(default=0)  # ended after having started
    ended_never_started = models.BigIntegerField(default=0)
    ended_cancelled = models.BigIntegerField(default=0)  # of both, by state
    ended_failed = models.BigIntegerField(default=0)  # FAILED, NODE_FAIL, BOOT_FAIL, OUT_OF_MEMORY, DEADLINE
    ended_timeout = models.BigIntegerField(default=0)
    ended_wall_s = models.BigIntegerField(default=0)  # whole run times, not prorated
    ended_node_s = models.BigIntegerField(default=0)  # run time × nodes, run time > 0
    ended_wait_node_s = models.BigIntegerField(default=0)  # wait × nodes, run time > 0
    ended_core_s = models.BigIntegerField(default=0)  # whole core time of ended jobs
    ended_lost_core_s = models.BigIntegerField(default=0)  # of those that failed, timed out or were cancelled
    wait_s = models.BigIntegerField(default=0)
    waits = models.BigIntegerField(default=0)
    max_cores = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


class RollupDay(DaySums):
    """What one user did on one UTC day under one lab, partition, QoS, actor and harness."""

    partition = models.CharField(max_length=64, default="", blank=True)
    qos = models.CharField(max_length=64, default="", blank=True)
    # Its hours: hour of the day, submissions, core, node and GPU seconds (`telemetry.engine.packed`); null: not known.
    hours = models.TextField(null=True, blank=True)  # noqa: DJ001 - not known is not none

    objects = DailyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "day", "cluster_user", "lab", "partition", "qos", "actor", "harness"],
                name="telemetry_rollupday_key",
            )
        ]
        indexes = [models.Index(fields=["lab", "day"], name="telemetry_rollupday_lab")]

    def __str__(self) -> str:
        return f"{self.day} {self.cluster_user_id} {self.actor}"


class RollupUser(DaySums):
    """What one user did on one UTC day in one lab, as one actor with one harness: `RollupDay` over partitions and QoS.

    What looks at a whole facility reads these, a fraction of the rows.
    """

    # How many of its ended jobs ran how long: bucket of `telemetry.engine.usage.RUNTIME_EDGES_S`, jobs
    # (`telemetry.engine.packed`).
    runtimes = models.TextField(default="", blank=True)

    objects = DailyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "day", "cluster_user", "lab", "actor", "harness"], name="telemetry_rollupuser_key"
            )
        ]
        indexes = [models.Index(fields=["lab", "day"], name="telemetry_rollupuser_lab")]

    def __str__(self) -> str:
        return f"{self.day} {self.cluster_user_id} {self.actor}"


class RollupHistogram(models.Model):
    """How many jobs of an actor that ended on a UTC day ran how long, on a whole cluster (`RollupUser`)."""

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    actor = models.CharField(max_length=8, choices=Actor.choices)
    bucket = models.PositiveSmallIntegerField()
    jobs = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "day", "actor", "bucket"], name="telemetry_rolluphistogram_key")
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.actor} {self.bucket}: {self.jobs}"


class RollupHour(models.Model):
    """What one partition saw in one UTC hour, by actor and harness: for trends and the hour of the week."""

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    hour = EpochField()
    partition = models.CharField(max_length=64, default="", blank=True)
    actor = models.CharField(max_length=8, choices=Actor.choices)
    harness = models.CharField(max_length=32, default="", blank=True)
    submissions = models.BigIntegerField(default=0)
    core_s = models.BigIntegerField(default=0)
    node_s = models.BigIntegerField(default=0)
    gpu_s = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "hour", "partition", "actor", "harness"], name="telemetry_rolluphour_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H} {self.actor}"


class RollupDirty(models.Model):
    """A (day, user) whose rollups are to be recomputed: written with the change, deleted with the recomputation.

    `stamp` rises with each change: who has computed deletes the mark as it was before reading, and no newer one.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    cluster_user = models.ForeignKey(
        ClusterUser, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    stamp = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "day", "cluster_user"], name="telemetry_rollupdirty_key")
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.cluster_user_id}"


class DataGenerationManager(models.Manager["DataGeneration"]):
    """The generations of clusters' data."""

    def of(self, cluster: Cluster) -> int:
        """Return the generation of a cluster's data; 0 before there are any."""
        return self.filter(cluster=cluster).values_list("number", flat=True).first() or 0

    def start(self, cluster: Cluster) -> None:
        """Begin the next one, in the transaction that changes the data, behind all else: others wait for its row."""
        ours = self.filter(cluster=cluster)
        if not ours.update(number=F("number") + 1):
            self.get_or_create(cluster=cluster)
            ours.update(number=F("number") + 1)


class DataGeneration(models.Model):
    """How often the data of a cluster changed that reports are made from: rollups, sessions, readings of GPUs."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="+")
    number = models.BigIntegerField(default=0)

    objects = DataGenerationManager()

    def __str__(self) -> str:
        return f"{self.cluster_id}: {self.number}"

"""Daily rollups of what jobs did with their GPUs, and which days are out of date.

As the other rollups: recomputed, never incremented, and without constraints of their keys.
"""

from typing import Self

from django.db import models

from principals.actors import Actor as Principal
from principals.models import Cluster, Lab
from telemetry.models.gpu import JobGpuUse
from telemetry.models.jobs import Actor


class RollupGpuQuerySet(models.QuerySet["RollupGpu"]):
    """Daily rollups of GPU use, as somebody may see them."""

    def visible_to(self, actor: Principal) -> Self:
        """Staff see all, PIs and managers their labs'; nobody's own are apart from the lab's here."""
        return self if actor.sees_facility else self.filter(lab_id__in=actor.visible_lab_ids)


class RollupGpu(models.Model):
    """One lab's jobs with GPUs on one partition that ended on one UTC day after having started, alike in their use.

    A job counts whole on the day of its end, for readings are of whole jobs. `quadrant` is "" for jobs that nobody
    measured. Sums are GPU-seconds; each job's stranded part is rounded to a whole one (half up), so that sums are exact
    in any order. Without users, for with them there would be hardly fewer rows than jobs.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    lab = models.ForeignKey(Lab, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False)
    partition = models.CharField(max_length=64, default="", blank=True)
    actor = models.CharField(max_length=8, choices=Actor.choices)
    harness = models.CharField(max_length=32, default="", blank=True)
    quadrant = models.CharField(max_length=8, choices=JobGpuUse.Quadrant.choices, default="", blank=True)

    jobs = models.BigIntegerField(default=0)
    held_s = models.BigIntegerField(default=0)  # of all their GPUs
    measured_s = models.BigIntegerField(default=0)  # of those GPUs that were measured
    stranded_s = models.BigIntegerField(default=0)  # of the measured ones; the rest of it was used
    peaks = models.BigIntegerField(default=0)  # jobs whose memory is their peak, for their source knows no mean

    objects = RollupGpuQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "day", "lab", "partition", "actor", "harness", "quadrant"],
                name="telemetry_rollupgpu_key",
            )
        ]
        indexes = [models.Index(fields=["lab", "day"], name="telemetry_rollupgpu_lab")]

    def __str__(self) -> str:
        return f"{self.day} {self.lab_id} {self.actor} {self.quadrant}"


class RollupGpuDirty(models.Model):
    """A day whose `RollupGpu` is to be recomputed. `stamp` rises with each change, as that of `RollupDirty`."""

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    stamp = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "day"], name="telemetry_rollupgpudirty_key")]

    def __str__(self) -> str:
        return f"{self.day}"

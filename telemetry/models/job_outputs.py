"""Where jobs write, as the queue says: accounting tells it from Slurm 24.11 on alone, and of old jobs."""

from collections.abc import Collection
from typing import Self

from django.db import models

from portal.core.fields import EpochField
from principals.actors import Actor
from principals.models import Cluster


class JobOutputQuerySet(models.QuerySet["JobOutput"]):
    """Outputs, as somebody may see them and by job."""

    def visible_to(self, actor: Actor) -> Self:
        """They go into events, whose topics say who hears of a job; as a list they are staff's."""
        return self if actor.sees_facility else self.none()

    def of(self, cluster: Cluster, raw_ids: Collection[int]) -> dict[int, tuple[str, str]]:
        """Return output and errors of some jobs, by raw id: one query, none without jobs."""
        if not raw_ids:
            return {}
        rows = self.filter(cluster=cluster, raw_id__in=set(raw_ids)).values_list("raw_id", "stdout", "stderr")
        return {raw_id: (stdout, stderr) for raw_id, stdout, stderr in rows}


class JobOutput(models.Model):
    """The paths of one job that stands in the queue, or stood there a while ago, with Slurm's patterns in them.

    Written when a look first sees the job; `left` is when a look found it gone. Of a number that Slurm gives again the
    newer job's take their place.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    raw_id = models.BigIntegerField()
    stdout = models.TextField(default="", blank=True)
    stderr = models.TextField(default="", blank=True)
    left = EpochField(null=True, blank=True)

    objects = JobOutputQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "raw_id"], name="telemetry_joboutput_key")]
        indexes = [models.Index(fields=["left"], name="telemetry_joboutput_left")]

    def __str__(self) -> str:
        return f"output of {self.raw_id}"

"""What squeue prints of the jobs of those for whom agents work, kept to print it again; and how often that was done."""

from typing import Self

from django.db import models

from portal.core.fields import EpochField
from principals.actors import Actor
from principals.models import Cluster, ClusterUser


class QueueSheetQuerySet(models.QuerySet["QueueSheet"]):
    """Sheets, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """A person's own and, for an agent, its owner's: nobody else's, whoever asks."""
        return self.filter(cluster_user__user=actor.user) if actor.user else self.none()


class QueueSheet(models.Model):
    """The rows of one login name in squeue's order, of each the texts of `printing.KEYS`: written where they change.

    Kept for as long as Slurm's queue holds the jobs (MinJobAge after their end) and only for owners of working agents.
    When it was true stands in `SlurmReader.shown`. `rows` is null where there are too many.
    """

    cluster_user = models.OneToOneField(ClusterUser, on_delete=models.CASCADE, related_name="+")
    rows = models.JSONField(null=True)
    changed = EpochField()

    objects = QueueSheetQuerySet.as_manager()

    def __str__(self) -> str:
        return f"queue of {self.cluster_user_id}"


class ShimUse(models.Model):
    """How often `gatehouse squeue` and `gatehouse sacct` were answered on one UTC day, and how, on one cluster."""

    class Outcome(models.TextChoices):
        PRINTED = "printed", "Printed from what the portal knows"
        SHARED = "shared", "Waited for a shared call"
        CALLED = "called", "Made the shared call"
        PASSED = "passed", "Left to the real command"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    program = models.CharField(max_length=8)  # squeue, sacct
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    reason = models.CharField(max_length=24, default="", blank=True)  # why it was left to the real command
    times = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "day", "program", "outcome", "reason"], name="telemetry_shimuse_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.program} {self.outcome} on {self.day}"

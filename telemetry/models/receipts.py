"""Receipts that agents put into the comments of their jobs."""

from typing import Self

from django.db import models

from portal.core.fields import EpochField
from principals.actors import Actor
from principals.models import Agent, Cluster


class JobReceiptQuerySet(models.QuerySet["JobReceipt"]):
    """Receipts, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Those of agents that the actor may see."""
        return self.filter(agent__in=Agent.objects.visible_to(actor))


class JobReceipt(models.Model):
    """A word that says of a job on a cluster, submitted while it is valid, that an agent submitted it.

    It is no secret: it gives no right to anything, and says nothing of a job whose login name is not of the agent's
    owner. It stays after it is over, for jobs that are told late and those attributed anew.
    """

    public_id = models.CharField(max_length=20, unique=True)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="job_receipts")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    issued = EpochField()
    valid_until = EpochField()

    objects = JobReceiptQuerySet.as_manager()

    def __str__(self) -> str:
        return self.public_id

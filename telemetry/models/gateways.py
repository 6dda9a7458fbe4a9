"""What gateways' access logs told: requests of agents by login name, those of everybody else as totals alone."""

from typing import Any, Self

from django.db import models
from django.db.models import Q

from portal.core.fields import EpochField
from principals.actors import Actor as Principal
from principals.models import Cluster, ClusterUser
from telemetry.models.jobs import Actor


class OfGatewaysQuerySet(models.QuerySet[Any]):
    """Rows of gateways, as somebody may see them."""

    def visible_to(self, actor: Principal) -> Self:
        """Staff see all, a person those of their own login names; an agent none, and totals are nobody's else."""
        if actor.sees_facility:
            return self
        if actor.agent is not None or actor.user is None:
            return self.none()
        return self.filter(cluster_user__user=actor.user)


class Gateway(models.TextChoices):
    """A kind of gateway."""

    ONDEMAND = "ondemand", "Open OnDemand"
    JUPYTERHUB = "jupyterhub", "JupyterHub"
    FIRECREST = "firecrest", "FirecREST"


class OfGateway(models.Model):
    """Whose requests: of a login name's agent, with its harness; or of a driver in all, and then of no login name."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    host = models.CharField(max_length=100)
    gateway = models.CharField(max_length=12, choices=Gateway.choices)
    driver = models.CharField(max_length=8, choices=Actor.choices)
    cluster_user = models.ForeignKey(
        ClusterUser, on_delete=models.CASCADE, null=True, blank=True, related_name="+", db_index=False
    )
    harness = models.CharField(max_length=32, default="", blank=True)

    objects = OfGatewaysQuerySet.as_manager()

    class Meta:
        abstract = True


class GatewayMinute(OfGateway):
    """Requests of one minute, second by second, so that two files which both have a second count it once.

    `seconds` is {second: [requests, submissions, transfers]}: of two rows for the same second the greater numbers stay.
    """

    minute = EpochField()
    seconds = models.JSONField()

    class Meta(OfGateway.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "minute", "host", "gateway", "cluster_user", "harness"],
                condition=Q(cluster_user__isnull=False), name="telemetry_gatewayminute_user",
            ),
            models.UniqueConstraint(
                fields=["cluster", "minute", "host", "gateway", "driver"],
                condition=Q(cluster_user__isnull=True), name="telemetry_gatewayminute_all",
            ),
        ]  # fmt: skip
        indexes = [models.Index(fields=["minute"], name="telemetry_gatewayminute_age")]

    def __str__(self) -> str:
        return f"{self.driver} on {self.host} at {self.minute:%Y-%m-%d %H:%M}"


class GatewayDay(OfGateway):
    """Requests of one UTC day: recomputed from minutes, never incremented."""

    day = models.DateField()
    requests = models.PositiveIntegerField()
    submissions = models.PositiveIntegerField()
    transfers = models.PositiveIntegerField()

    class Meta(OfGateway.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "day", "host", "gateway", "cluster_user", "harness"],
                condition=Q(cluster_user__isnull=False), name="telemetry_gatewayday_user",
            ),
            models.UniqueConstraint(
                fields=["cluster", "day", "host", "gateway", "driver"],
                condition=Q(cluster_user__isnull=True), name="telemetry_gatewayday_all",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.driver} on {self.host} on {self.day}"

"""Clusters and the names Slurm knows on them: users, accounts, associations."""

from typing import Self

from django.db import models
from django.db.models.functions import Lower

from portal.core import clock
from portal.core.errors import Conflict
from principals.actors import Actor
from principals.models.people import Lab, User


class ClusterQuerySet(models.QuerySet["Cluster"]):
    """Clusters, as Slurm and people name them."""

    def named(self, name: str) -> Self:
        """The one of that name, at most: to Slurm it is the same in any case (slurm.conf(5), ClusterName)."""
        return self.filter(name__iexact=name) if name.isascii() and name.isprintable() else self.none()


class Cluster(models.Model):
    """A Slurm cluster."""

    name = models.SlugField(max_length=40, unique=True)
    is_demo = models.BooleanField(default=False)
    created = models.DateTimeField(default=clock.now)

    objects = ClusterQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("name"), name="principals_cluster_in_any_case")]

    def __str__(self) -> str:
        return self.name

    def lock(self) -> None:
        """Lock its row in the caller's transaction, before anything of it is stored. Errors: `Conflict`: it is gone."""
        if Cluster.objects.select_for_update(no_key=True).filter(pk=self.pk).first() is None:
            raise Conflict(
                f"The cluster {self.name} was taken back this minute, for nothing of it was stored.",
                code="cluster_withdrawn", remedy="Send it again.",
            )  # fmt: skip

    def is_named(self, name: str) -> bool:
        """Say whether it is what somebody calls it, as `ClusterQuerySet.named` finds it."""
        return name.isascii() and name.lower() == self.name.lower()  # the Kelvin sign becomes a k


class SlurmAccount(models.Model):
    """A Slurm account on a cluster, and the lab that pays for it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="accounts")
    name = models.CharField(max_length=64)
    lab = models.ForeignKey(Lab, on_delete=models.PROTECT, related_name="accounts")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="principals_slurmaccount_name")]

    def __str__(self) -> str:
        return f"{self.name}@{self.cluster_id}"


class ClusterUserQuerySet(models.QuerySet["ClusterUser"]):
    """Login names, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff see all; everyone else the names that are their own."""
        if actor.sees_facility:
            return self
        return self.filter(user=actor.user) if actor.user else self.none()


class ClusterUser(models.Model):
    """A login name on a cluster, and the person it belongs to where known."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="cluster_users")
    login = models.CharField(max_length=64)
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="cluster_users")

    objects = ClusterUserQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "login"], name="principals_clusteruser_login")]

    def __str__(self) -> str:
        return self.login


class Association(models.Model):
    """Slurm's permission of a user to charge an account (sacctmgr(1), "associations")."""

    cluster_user = models.ForeignKey(ClusterUser, on_delete=models.CASCADE, related_name="associations")
    account = models.ForeignKey(SlurmAccount, on_delete=models.CASCADE, related_name="associations")
    partition = models.CharField(max_length=64, default="", blank=True)  # empty: any partition
    qos = models.JSONField(default=list, blank=True)
    is_default = models.BooleanField(default=False)
    ended = models.DateTimeField(null=True, blank=True)  # when Slurm no longer knew it

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster_user", "account", "partition"], name="principals_association_user_account"
            )
        ]

    def __str__(self) -> str:
        return f"{self.cluster_user} → {self.account}"

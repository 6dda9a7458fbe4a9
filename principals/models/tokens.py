"""Tokens: shown once, stored as a peppered digest, scoped, expiring, revocable at once."""

from django.db import models

from portal.core import clock
from principals.models.agents import Agent
from principals.models.clusters import Cluster
from principals.models.people import User


class Token(models.Model):
    """What both kinds of token have. `key` is public and unique; of the secret only a digest is kept."""

    label = models.CharField(max_length=80, default="", blank=True)
    key = models.CharField(max_length=24, unique=True)
    digest = models.CharField(max_length=64)
    pepper = models.PositiveSmallIntegerField()
    scopes = models.JSONField(default=list)
    networks = models.JSONField(default=list, blank=True)  # CIDRs it may come from; empty: any
    created = models.DateTimeField(default=clock.now)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    expires = models.DateTimeField()
    last_used = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=150, default="", blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.key

    @property
    def state(self) -> str:
        """active, revoked or expired."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires <= clock.now() else "active"


class AgentToken(Token):
    """A token with which an agent's harness speaks. It dies with its agent."""

    class How(models.TextChoices):
        MADE = "made", "Made on the agent’s page"
        MUNGE = "munge", "Login by MUNGE"

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="tokens")
    how = models.CharField(max_length=8, choices=How.choices, default=How.MADE, db_default=How.MADE)
    host = models.CharField(max_length=100, default="", blank=True, db_default="")  # where somebody logged in
    # The one that it was rolled over from, which ends a while after it was made.
    replaces = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="replaced_by")


class ServiceAccount(models.Model):
    """A piece of site automation (hook, collector, reader) that may post telemetry."""

    name = models.SlugField(max_length=64, unique=True)
    purpose = models.CharField(max_length=200, blank=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    is_active = models.BooleanField(default=True)
    created = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return self.name


class ServiceToken(Token):
    """A token of site automation; bound to one cluster where its account is."""

    service = models.ForeignKey(ServiceAccount, on_delete=models.CASCADE, related_name="tokens")

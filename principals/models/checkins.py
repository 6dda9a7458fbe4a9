"""What owners and harnesses say of sessions: that one is theirs, that one has begun and goes on."""

import secrets

from django.db import models

from portal.core import clock
from portal.core.fields import EpochField
from principals.models.agents import Agent, AgentSession
from principals.models.clusters import ClusterUser
from principals.models.people import User


def make_public_id() -> str:
    """Return an id that tells nothing and that nobody guesses."""
    return f"s_{secrets.token_hex(10)}"


class SessionClaim(models.Model):
    """An owner's word that sessions nobody had registered are of an agent of theirs; it can be taken back."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="claims")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=clock.now)
    undone = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"claim for {self.agent} by {self.by}"


class ClaimedSession(models.Model):
    """One session of a claim. It stays after the claim is taken back: nothing ties that session by itself again."""

    claim = models.ForeignKey(SessionClaim, on_delete=models.CASCADE, related_name="sessions")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="claims")

    def __str__(self) -> str:
        return f"{self.session} in {self.claim}"


class SessionCheckIn(models.Model):
    """What a harness told of its own session when it checked in; its word alone, beside what a collector sees."""

    class End(models.TextChoices):
        SAID = "said", "It said so"
        SILENT = "silent", "It fell silent"

    public_id = models.CharField(max_length=24, unique=True, default=make_public_id)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="check_ins")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="check_ins")
    cluster_user = models.ForeignKey(ClusterUser, on_delete=models.CASCADE, related_name="check_ins")
    host = models.CharField(max_length=100)
    raw_job_id = models.BigIntegerField(null=True, blank=True)  # of the job that it runs in
    pid = models.PositiveIntegerField()
    harness_version = models.CharField(max_length=40, default="", blank=True)
    model = models.CharField(max_length=80, default="", blank=True)
    directory = models.CharField(max_length=80, default="", blank=True)  # a label, not a path
    started = EpochField()
    last_beat = models.DateTimeField(default=clock.now)
    ended = models.DateTimeField(null=True, blank=True)
    how_ended = models.CharField(max_length=8, choices=End.choices, default="", blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["ended", "last_beat"], name="principals_checkin_silent"),
            models.Index(fields=["cluster_user", "host", "ended"], name="principals_checkin_node"),
            models.Index(fields=["agent", "ended"], name="principals_checkin_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} on {self.host}, process {self.pid}"

"""Logins of devices that wait for their person (RFC 8628). Of the codes only digests are kept, for an hour."""

from django.db import models

from portal.core import clock
from principals.models.agents import Agent
from principals.models.people import User


class DeviceLogin(models.Model):
    """A device that asked for a token of an agent, and what its person said to that."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        APPROVED = "approved", "Approved"
        REFUSED = "refused", "Refused"
        USED = "used", "Used"

    device_digest = models.CharField(max_length=64, unique=True)
    user_digest = models.CharField(max_length=64, unique=True)
    # What the device said of itself: anybody may say anything.
    agent_name = models.CharField(max_length=100)
    host = models.CharField(max_length=100)
    address = models.CharField(max_length=45, default="", blank=True)  # where it asked from
    scopes = models.JSONField(default=list)
    created = models.DateTimeField(default=clock.now)
    expires = models.DateTimeField(db_index=True)
    interval_s = models.PositiveSmallIntegerField()
    last_asked = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    decided_by = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="+")

    def __str__(self) -> str:
        return f"{self.agent_name} on {self.host}"

    def move(self, *, old: str, new: str) -> bool:
        """Change the state by conditional update; say whether this call was the one that did."""
        return bool(DeviceLogin.objects.filter(pk=self.pk, state=old).update(state=new))

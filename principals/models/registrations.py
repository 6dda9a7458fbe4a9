"""What happens to a registration after it is made: reminders of its end, and its passing to somebody else."""

from django.db import models
from django.db.models import Q

from portal.core import clock
from principals.models.agents import Agent
from principals.models.people import User


class RenewalReminder(models.Model):
    """That the end of a registration was announced, so many days before: each once for each end."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="reminders")
    expires = models.DateTimeField()  # the end that it was about
    days = models.PositiveSmallIntegerField()
    at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "expires", "days"], name="principals_renewalreminder_once")
        ]

    def __str__(self) -> str:
        return f"{self.agent}, {self.days} days before {self.expires:%Y-%m-%d}"


class AgentHandover(models.Model):
    """An agent's way from who answers for it to somebody else: it passes once both sides agreed."""

    class State(models.TextChoices):
        OPEN = "open", "Open"
        DONE = "done", "Done"
        CLOSED = "closed", "Declined or withdrawn"

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="handovers")
    giver = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    taker = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    giver_agreed = models.BooleanField(default=False)
    taker_agreed = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    asked = models.DateTimeField(default=clock.now)
    settled = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent"], condition=Q(state="open"), name="principals_agenthandover_open")
        ]

    def __str__(self) -> str:
        return f"{self.agent} from {self.giver} to {self.taker}"

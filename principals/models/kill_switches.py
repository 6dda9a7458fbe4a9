"""Kill switches: many agents stopped at once, by whom, why, until when, and how far it reached."""

from datetime import timedelta
from typing import Self

from django.db import models
from django.db.models import Q
from django.urls import reverse

from portal.core import clock
from principals.actors import Actor
from principals.models.holds import Hold
from principals.models.people import User


class KillSwitchQuerySet(models.QuerySet["KillSwitch"]):
    """Kill switches, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Whoever looks at the whole facility sees all; nobody else any: they name people and labs."""
        return self if actor.sees_facility else self.none()

    def in_force(self) -> Self:
        """Those that stop agents now."""
        return self.filter(state=KillSwitch.State.IN_FORCE, until__gt=clock.now())

    def waiting(self) -> Self:
        """Those that wait for a second person."""
        return self.filter(state=KillSwitch.State.ASKED, asked_at__gt=clock.now() - KillSwitch.WAITS)


class KillSwitch(models.Model):
    """One decision to stop agents. What it does it does by one hold, so lifting that restores what was."""

    WAITS = timedelta(hours=1)

    class Target(models.TextChoices):
        AGENT = Hold.Subject.AGENT.value, "One agent"
        OWNER = Hold.Subject.OWNER.value, "A person’s agents"
        LAB = Hold.Subject.LAB.value, "A lab’s agents"
        HARNESS = Hold.Subject.HARNESS.value, "Agents of one harness"
        ALL = Hold.Subject.ALL.value, "Every agent"

    class State(models.TextChoices):
        ASKED = "asked", "Waits for a second person"
        IN_FORCE = "in_force", "In force"
        ENDED = "ended", "Ended"
        WITHDRAWN = "withdrawn", "Withdrawn"
        DRILL = "drill", "Drill"

    target_kind = models.CharField(max_length=8, choices=Target.choices)
    target_id = models.BigIntegerField(default=0)
    target_name = models.CharField(max_length=32, default="", blank=True)
    target_label = models.CharField(max_length=200)
    reason = models.CharField(max_length=300)
    until = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State.choices)
    reach = models.JSONField(default=dict)  # how far it went when it was decided: `principals.selectors.Reach`
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(default=clock.now)
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    decided_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=300, default="", blank=True)
    hold = models.OneToOneField(Hold, on_delete=models.PROTECT, null=True, blank=True, related_name="kill_switch")

    objects = KillSwitchQuerySet.as_manager()

    class Meta:
        ordering = ["-asked_at"]
        constraints = [
            models.CheckConstraint(
                name="principals_killswitch_hold",
                condition=~Q(state="in_force") | Q(hold__isnull=False),
            )
        ]
        indexes = [models.Index(fields=["state", "asked_at"], name="principals_killswitch_state")]

    def __str__(self) -> str:
        return f"{self.target_label} ({self.state})"

    def get_absolute_url(self) -> str:
        return reverse("kill-switch", kwargs={"pk": self.pk})

    @property
    def is_waiting(self) -> bool:
        """Whether a second person may still decide it."""
        return self.state == self.State.ASKED and self.asked_at > clock.now() - self.WAITS

    @property
    def is_in_force(self) -> bool:
        """Whether it stops agents now."""
        return self.state == self.State.IN_FORCE and self.until > clock.now()

"""What agents' harnesses tell of themselves over OTLP: who agreed to it, what was told, and its sums by day.

Counts of `telemetry.engine.otel.measures` alone: no prompt, path, argument or name. A harness's session is a digest.
"""

from typing import Self

from django.db import models
from django.db.models import Q

from portal.core import clock
from portal.core.fields import EpochField
from principals.actors import Actor as Principal
from principals.models import Agent, AgentSession, User


class HarnessChoice(models.Model):
    """What a person said: their agents' harnesses may tell what they count, or may not. No row: nothing was said."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="harness_choice")
    agreed = models.BooleanField()
    at = models.DateTimeField(default=clock.now)  # nothing older than an agreement is taken

    def __str__(self) -> str:
        return f"{self.user}: {'yes' if self.agreed else 'no'}"


class HarnessReading(models.Model):
    """What one harness session told in one minute (of a cumulative series: on one day), by digests.

    `parts` are those of `telemetry.engine.otel.sums`: the same told again changes nothing.
    """

    class Source(models.TextChoices):
        DELTA = "delta", "Metric, as it grew"
        CUMULATIVE = "cumulative", "Metric, as it stands"
        EVENT = "event", "Event"

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    session_key = models.CharField(max_length=24)  # "" where the harness did not say
    source = models.CharField(max_length=10, choices=Source.choices)
    at = EpochField()  # the minute, or the day's midnight
    parts = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "session_key", "at", "source"], name="telemetry_harnessreading_key"
            )
        ]
        indexes = [models.Index(fields=["at"], name="telemetry_harnessread_age")]

    def __str__(self) -> str:
        return f"{self.source} of {self.agent_id} at {self.at:%Y-%m-%d %H:%M}"


class HarnessDayQuerySet(models.QuerySet["HarnessDay"]):
    """Days of harness sessions, as somebody may see them."""

    def visible_to(self, actor: Principal) -> Self:
        """Staff see all; an agent its own; a person those of their agents and of labs that they look after."""
        if actor.sees_facility:
            return self
        if actor.agent is not None:
            return self.filter(agent=actor.agent)
        if actor.user is None:
            return self.none()
        return self.filter(Q(agent__owner=actor.user) | Q(agent__lab_id__in=actor.visible_lab_ids))


class HarnessDay(models.Model):
    """What a session of an agent's harness counted on one UTC day. Recomputed from readings, never incremented.

    `stamp` grows with each reading, and `stale` says that the counts are not those of the newest one yet.
    """

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="harness_days", db_index=False)
    day = models.DateField()
    session_key = models.CharField(max_length=24)
    harness = models.CharField(max_length=32)
    # The session that a collector or the site declared, where there is one alone that it can have been.
    session = models.ForeignKey(AgentSession, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    first = EpochField()
    last = EpochField()
    counts = models.JSONField(default=dict)
    stamp = models.BigIntegerField(default=1)
    stale = models.BooleanField(default=True)

    objects = HarnessDayQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "day", "session_key"], name="telemetry_harnessday_key")]
        indexes = [
            models.Index(fields=["day"], name="telemetry_harnessday_day"),
            models.Index(fields=["id"], condition=Q(stale=True), name="telemetry_harnessday_stale"),
        ]

    def __str__(self) -> str:
        return f"{self.harness} of {self.agent_id} on {self.day}"

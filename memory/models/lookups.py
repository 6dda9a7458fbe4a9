"""How often lessons are looked up, and found. The text asked for is not kept."""

from datetime import timedelta

from django.db import models

from memory.models.choices import ActorKind
from portal.core import clock


class LessonLookup(models.Model):
    """One look-up: which error, whether a lesson fitted, what kind of principal asked; never who, never the text."""

    KEPT = timedelta(days=400)

    at = models.DateTimeField(default=clock.now)
    signature = models.CharField(max_length=12)
    found = models.BooleanField()
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)

    class Meta:
        indexes = [models.Index(fields=["at", "found"], name="memory_lookup_at")]

    def __str__(self) -> str:
        return f"{self.signature} {'found' if self.found else 'unknown'}"

"""What speaks for or against a lesson. Append only."""

from typing import Any, NoReturn

from django.db import models

from memory.models.choices import ActorKind, Polarity, Source
from memory.models.lessons import Lesson
from portal.core import clock
from principals.models import Agent, Lab, User


class LessonEvidence(models.Model):
    """One voice on a lesson. A person and all agents that act for them are one voice, and it counts once."""

    lesson = models.ForeignKey(Lesson, on_delete=models.CASCADE, related_name="evidence")
    kind = models.CharField(max_length=12, choices=Source.choices)
    polarity = models.CharField(max_length=8, choices=Polarity.choices)
    voice = models.CharField(max_length=40)  # `user:<id>`, of an agent its owner; `system`
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_label = models.CharField(max_length=150)
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    lab = models.ForeignKey(Lab, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    job_key = models.CharField(max_length=80, null=True, blank=True)  # noqa: DJ001 - null: no job is named
    at = models.DateTimeField(default=clock.now)

    class Meta:
        ordering = ["at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["lesson", "voice", "polarity"], name="memory_evidence_one_voice")
        ]

    def __str__(self) -> str:
        return f"{self.actor_label} {self.polarity} {self.lesson}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise RuntimeError("Evidence is never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("Evidence is never deleted but with its lesson.")

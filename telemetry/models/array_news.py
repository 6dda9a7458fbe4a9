"""What was last told of arrays, and whether something is owed: arrays are told of once a second at most."""

from datetime import datetime, timedelta
from typing import Final, Self

from django.db import models
from django.db.models import Q

from portal.core.fields import EpochField
from principals.actors import Actor
from principals.models import Cluster

APART: Final = timedelta(seconds=1)


class ArrayToldQuerySet(models.QuerySet["ArrayTold"]):
    """Arrays that were told of, as somebody may see them and by what is owed."""

    def visible_to(self, actor: Actor) -> Self:
        """They are about the portal's own work, and for those who look at the whole facility."""
        return self if actor.sees_facility else self.none()

    def due(self, now: datetime) -> Self:
        """Those that have changed since they were told of, and may be told of again; a clock may have been ahead."""
        return self.filter(Q(told__lte=now - APART) | Q(told__gt=now + APART), is_owed=True)


class ArrayTold(models.Model):
    """One array: when it was last told of, and what. `submit` is its newest task's, for numbers begin anew.

    `is_owed` is set in the transaction of the change that was not told. It holds states and numbers, nothing of a
    person.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    array_job_id = models.BigIntegerField()
    submit = EpochField()
    told = models.DateTimeField()
    facts = models.JSONField(default=dict)
    is_owed = models.BooleanField(default=False)

    objects = ArrayToldQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "array_job_id"], name="telemetry_arraytold_key")]
        indexes = [
            models.Index(fields=["told"], name="telemetry_arraytold_age"),
            models.Index(fields=["cluster"], name="telemetry_arraytold_owed", condition=Q(is_owed=True)),
        ]

    def __str__(self) -> str:
        return f"array {self.array_job_id}"

    def may_be_told(self, now: datetime) -> bool:
        """Say whether the last time is long enough ago."""
        return not now - APART < self.told <= now + APART

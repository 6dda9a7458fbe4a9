"""Collectors of process telemetry: what they reported of themselves, and the studies that let them name people."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Self

from django.db import models
from django.db.models import Q

from portal.core import clock
from portal.core.fields import EpochField
from principals.actors import Actor
from principals.models import Cluster


class OfNodesQuerySet(models.QuerySet[Any]):
    """Sums of nodes, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff alone: a node is nobody's."""
        return self if actor.sees_facility else self.none()


class SshDay(models.Model):
    """Connections of a day to a node by SSH, without a terminal, that are no agent's, as one start of its collector
    counted them: how many different keys and clients there were. Which ones, nobody is told.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    host = models.CharField(max_length=100)
    day = models.DateField()
    run = models.UUIDField()
    connections = models.PositiveIntegerField()
    untold = models.PositiveIntegerField()  # of which sshd logged nothing that could be read
    keys = models.PositiveIntegerField()
    clients = models.PositiveIntegerField()
    pairs = models.PositiveIntegerField()

    objects = OfNodesQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "day", "host", "run"], name="telemetry_sshday_key")]

    def __str__(self) -> str:
        return f"{self.connections} on {self.host} on {self.day}"


class BaselineStudyQuerySet(models.QuerySet["BaselineStudy"]):
    """Studies, as somebody may see them and by whether they run."""

    def visible_to(self, actor: Actor) -> Self:
        """Everybody who signs in may know what is studied here, and who approved it; programs need not."""
        return self if actor.is_person or actor.is_system else self.none()

    def running(self) -> Self:
        """Those whose time is now and that nobody ended before it."""
        now = clock.now()
        return self.filter(starts__lte=now, until__gt=now, ended=None)


class BaselineStudy(models.Model):
    """An approved study in which people's own shells are observed, as a baseline for what agents do.

    Without one that runs, of that name and cluster, nothing of a person's shells is taken, whatever a collector sends.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="studies")
    name = models.SlugField(max_length=64)
    purpose = models.CharField(max_length=500)
    approved_by = models.CharField(max_length=150)  # a board or an office, with its reference
    starts = EpochField()
    until = EpochField()
    ended = EpochField(null=True, blank=True)  # by hand, before its time: nothing is taken from then on
    created = models.DateTimeField(default=clock.now)

    objects = BaselineStudyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="telemetry_baselinestudy_name"),
            models.CheckConstraint(condition=Q(until__gt=models.F("starts")), name="telemetry_baselinestudy_order"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> str:
        """planned, running or ended."""
        now = clock.now()
        if self.ended is not None or self.until <= now:
            return "ended"
        return "running" if self.starts <= now else "planned"

    @property
    def first_day(self) -> date:
        """Its first day, UTC."""
        return self.starts.astimezone(UTC).date()

    @property
    def last_day(self) -> date:
        """Its last day, UTC: that on which somebody ended it, or else the last of those that were approved."""
        return (self.ended or self.until - timedelta(seconds=1)).astimezone(UTC).date()

    def covers(self, first: datetime, last: datetime) -> bool:
        """Say whether what was seen from `first` to `last` may be taken: within its time, and nobody ended it."""
        return self.ended is None and self.starts <= last and first < self.until


class CollectorReportQuerySet(models.QuerySet["CollectorReport"]):
    """Reports of collectors, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """They are about nodes, and for those who look at the whole facility."""
        return self if actor.sees_facility else self.none()


class CollectorReport(models.Model):
    """How a collector on a node did while it gathered one batch, and what became of the batch."""

    class Mode(models.TextChoices):
        EVENTS = "events", "Kernel events"
        WALK = "walk", "Walks of /proc"
        RECORDS = "records", "The site's own sensor"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    host = models.CharField(max_length=100)
    boot = models.CharField(max_length=36)
    run = models.UUIDField()  # of this start of the collector
    batch = models.UUIDField()
    version = models.CharField(max_length=32)
    mode = models.CharField(max_length=8, choices=Mode.choices)
    study = models.CharField(max_length=64, default="", blank=True)  # as the collector names it
    since = EpochField()
    until = EpochField()
    received = models.DateTimeField(default=clock.now)

    accepted = models.PositiveIntegerField(default=0)  # parts of the batch
    rejected = models.PositiveIntegerField(default=0)
    reasons = models.JSONField(default=dict, blank=True)  # of what was rejected: {reason: parts}

    events = models.BigIntegerField(default=0)
    lost = models.BigIntegerField(default=0)  # events that were never delivered, or could not be read
    argv_missed = models.BigIntegerField(default=0)  # commands whose words were gone before they could be read
    vanished = models.BigIntegerField(default=0)  # processes gone before anything could be read
    sampled_share = models.FloatField(default=1.0)  # of the commands that were classified; below 1 it sampled
    cpu_s = models.FloatField(default=0.0)
    memory_bytes = models.BigIntegerField(default=0)
    processes = models.PositiveIntegerField(default=0)  # on the node, at the end
    clock_ahead_s = models.IntegerField(default=0)  # of the node's clock to ours; below 0 it is behind

    objects = CollectorReportQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "batch"], name="telemetry_collectorreport_batch")]
        indexes = [
            models.Index(fields=["cluster", "host", "until"], name="telemetry_collectorreport_host"),
            models.Index(fields=["until"], name="telemetry_collectorreport_age"),
        ]

    def __str__(self) -> str:
        return f"{self.host} until {self.until:%Y-%m-%d %H:%M}"

    @property
    def lag_s(self) -> int:
        """Seconds from the end of what it covers to its arrival."""
        return max(0, int((self.received - self.until).total_seconds()))

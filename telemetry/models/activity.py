"""What was counted of commands on login nodes: by the minute as it came, and by the day.

A row of a session is about whoever's login name the session has; a row without one is a total of its node.
"""

from typing import Any, Self

from django.db import models
from django.db.models import Q

from portal.core.fields import EpochField
from principals.actors import Actor as Principal
from principals.models import AgentSession, Cluster, ClusterUser
from telemetry.models.collectors import BaselineStudy
from telemetry.models.jobs import Actor

Place = AgentSession.Place


class OfSessionsQuerySet(models.QuerySet[Any]):
    """Rows of sessions, as somebody may see them."""

    def visible_to(self, actor: Principal) -> Self:
        """Staff see all; an agent its own; a person their own, and of their labs what registered agents did.

        What runs under a member's name without being registered is no lab's to read, nor are totals of a node.
        """
        if actor.sees_facility:
            return self
        if actor.agent is not None:
            return self.filter(session__agent=actor.agent)
        if actor.user is None:
            return self.none()
        return self.filter(
            Q(session__cluster_user__user=actor.user) | Q(session__agent__lab_id__in=actor.visible_lab_ids)
        )


class ActivityMinute(models.Model):
    """What one driver did in one minute on one node: of a session, or of all that belongs to none.

    `counts` are those of `telemetry.engine.activity.MEASURES`; `run` is the collector's start that counted them, for a
    minute in which it was started anew has two rows.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    host = models.CharField(max_length=100)
    run = models.UUIDField()
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, null=True, blank=True, related_name="minutes", db_index=False
    )
    driver = models.CharField(max_length=8, choices=Actor.choices)
    # "" of a session, which has its own.
    place = models.CharField(max_length=10, choices=Place.choices, default="", blank=True, db_default=Place.LOGIN)
    minute = EpochField()
    study = models.ForeignKey(BaselineStudy, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    counts = models.JSONField()

    objects = OfSessionsQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "minute", "run", "driver"],
                condition=Q(session__isnull=False), name="telemetry_activityminute_session",
            ),
            models.UniqueConstraint(
                fields=["cluster", "minute", "host", "run", "driver", "place"],
                condition=Q(session__isnull=True), name="telemetry_activityminute_node",
            ),
        ]  # fmt: skip
        indexes = [models.Index(fields=["minute"], name="telemetry_activityminute_age")]

    def __str__(self) -> str:
        return f"{self.driver} on {self.host} at {self.minute:%Y-%m-%d %H:%M}"


class ActivityDay(models.Model):
    """What a session did on one UTC day, or what one driver did on a node outside any session.

    Recomputed from minutes, never incremented. It outlives its session: whose it was stands in the row itself.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    host = models.CharField(max_length=100)
    session = models.ForeignKey(
        AgentSession, on_delete=models.SET_NULL, null=True, blank=True, related_name="days", db_index=False
    )
    cluster_user = models.ForeignKey(ClusterUser, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    driver = models.CharField(max_length=8, choices=Actor.choices)
    place = models.CharField(max_length=10, choices=Place.choices, default=Place.LOGIN, db_default=Place.LOGIN)
    harness = models.CharField(max_length=32, default="", blank=True)
    study = models.ForeignKey(BaselineStudy, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    minutes = models.PositiveIntegerField()  # in which anything ran
    counts = models.JSONField()  # by measure

    objects = OfSessionsQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "day"], condition=Q(session__isnull=False), name="telemetry_activityday_session"
            ),
            models.UniqueConstraint(
                fields=["cluster", "day", "host", "driver", "place"],
                condition=Q(session__isnull=True, cluster_user__isnull=True), name="telemetry_activityday_node",
            ),
        ]  # fmt: skip
        indexes = [models.Index(fields=["cluster", "day"], name="telemetry_activityday_day")]

    def __str__(self) -> str:
        return f"{self.driver} on {self.host} on {self.day}"


class ActivityDirty(models.Model):
    """A (day, login name), or a day's totals of nodes, to be added up anew: as `RollupDirty`, with its `stamp`."""

    NODES = 0  # the `user_key` of what belongs to no session

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    user_key = models.BigIntegerField(default=NODES)  # a ClusterUser's id; no null, for two of those would differ
    stamp = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "day", "user_key"], name="telemetry_activitydirty_key")
        ]

    def __str__(self) -> str:
        return f"{self.day}"


class ActivitySubmission(models.Model):
    """How many submissions (sbatch, srun, salloc) a session started in one second: what jobs are joined by."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="submissions", db_index=False)
    at = EpochField()
    number = models.PositiveIntegerField(default=1)

    objects = OfSessionsQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "at"], name="telemetry_activitysubmission_at")]
        indexes = [models.Index(fields=["at"], name="telemetry_activitysubm_age")]

    def __str__(self) -> str:
        return f"{self.number} at {self.at}"


class PollingLoop(models.Model):
    """The same query of the scheduler, asked again and again from one place of a session."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="polling_loops", db_index=False)
    first = models.DateTimeField()
    last = models.DateTimeField()
    queries = models.PositiveIntegerField()
    period_s = models.FloatField()  # median between two queries

    objects = OfSessionsQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "first", "last", "queries"], name="telemetry_pollingloop_key")
        ]
        indexes = [models.Index(fields=["last"], name="telemetry_pollingloop_age")]

    def __str__(self) -> str:
        return f"{self.queries} queries from {self.first}"


class ExperimentLoop(models.Model):
    """A submission of a session, a look or an edit, and the next submission (paper §III-B)."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="loops", db_index=False)
    submitted = models.DateTimeField()
    again = models.DateTimeField()

    objects = OfSessionsQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "submitted", "again"], name="telemetry_experimentloop_key")
        ]
        indexes = [models.Index(fields=["again"], name="telemetry_experimentloop_age")]

    def __str__(self) -> str:
        return f"{self.submitted} to {self.again}"

    @property
    def seconds(self) -> float:
        return (self.again - self.submitted).total_seconds()

"""What Slurm's hooks told of jobs: a row for each piece of news, and what became of it."""

from typing import Self

from django.db import models
from django.db.models import Q

from portal.core import clock
from portal.core.fields import EpochField
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.slurm import hooks


class HookReportQuerySet(models.QuerySet["HookReport"]):
    """Reports, as somebody may see them and by whether they wait."""

    def visible_to(self, actor: Actor) -> Self:
        """They are about the intake, and for those who look at the whole facility."""
        return self if actor.sees_facility else self.none()

    def waiting(self) -> Self:
        """Those whose job accounting is still to be asked about."""
        return self.filter(outcome=HookReport.Outcome.WAITING)


class HookReport(models.Model):
    """One piece of a hook's news (`telemetry.engine.slurm.hooks.Report`): `repeats` counts how often it came again.

    It holds ids, states and times of a job, nothing of a person; what it did is in the job's row and in live events.
    """

    class Kind(models.TextChoices):
        JOBCOMP = hooks.JOBCOMP, "Job completion script"
        EPILOG = hooks.EPILOG, "EpilogSlurmctld"
        MAIL = hooks.MAIL, "MailProg"

    class Happened(models.TextChoices):
        BEGAN = "began", "Began"
        ENDED = "ended", "Ended"
        REQUEUED = "requeued", "Requeued"

    class Outcome(models.TextChoices):
        APPLIED = "applied", "Told first"
        KNOWN = "known", "Known already"
        WAITING = "waiting", "Waits for accounting"
        ANSWERED = "answered", "Answered by accounting"
        UNANSWERED = "unanswered", "Never answered"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.BigIntegerField()
    kind = models.CharField(max_length=8, choices=Kind.choices)
    happened = models.CharField(max_length=8, choices=Happened.choices)
    raw_id = models.BigIntegerField()
    array_job_id = models.BigIntegerField(null=True, blank=True)
    task = models.CharField(max_length=32, default="", blank=True)  # of an array, as people write it: 7_2
    submit = EpochField(null=True, blank=True)
    start = EpochField(null=True, blank=True)
    end = EpochField(null=True, blank=True)
    state = models.CharField(max_length=16, default="", blank=True)
    exit_code = models.PositiveIntegerField(default=0)
    exit_signal = models.PositiveIntegerField(default=0)
    fired = models.DateTimeField()  # when the hook ran, by the clock of its host
    received = models.DateTimeField(default=clock.now)
    repeats = models.PositiveIntegerField(default=0)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    tries = models.PositiveSmallIntegerField(default=0)  # how often accounting was asked

    objects = HookReportQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "digest"], name="telemetry_hookreport_key")]
        indexes = [
            models.Index(fields=["cluster", "raw_id"], name="telemetry_hookreport_job"),
            models.Index(fields=["received"], name="telemetry_hookreport_age"),
            models.Index(fields=["cluster"], name="telemetry_hookreport_waiting", condition=Q(outcome="waiting")),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: job {self.raw_id} {self.happened}"

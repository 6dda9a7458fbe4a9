"""Reports as they were drafted, approved and published."""

import hashlib
from datetime import datetime
from typing import Final, Self

from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils.text import capfirst

from portal.core import audit, clock
from principals.actors import Actor
from principals.models import Cluster, User
from telemetry.selectors import Period


def digest_of(content: object) -> str:
    """Return the SHA-256 of a report's content in its one canonical JSON text."""
    return hashlib.sha256(audit.canonical(content).encode()).hexdigest()


class ReportQuerySet(models.QuerySet["Report"]):
    """Reports, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Those who look at the whole facility see all, other people what is published, agents none."""
        if actor.sees_facility:
            return self
        return self.filter(state=Report.State.PUBLISHED) if actor.is_person else self.none()


class Report(models.Model):
    """One version of a cluster's period. A draft may be rebuilt, which takes its approval back; what was published
    never changes again.

    `content` is `portal.reports.contents.Content` as JSON, `digest` its SHA-256.
    """

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        APPROVED = "approved", "Approved"
        PUBLISHED = "published", "Published"
        SUPERSEDED = "superseded", "Superseded"

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+")
    first = models.DateField()
    last = models.DateField()
    version = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=12, choices=State.choices, default=State.DRAFT)
    content = models.JSONField()
    digest = models.CharField(max_length=64)
    built = models.DateTimeField(default=clock.now)
    built_by = models.CharField(max_length=150)
    generation = models.BigIntegerField(default=0, db_default=0)  # of the cluster's data that it was measured on
    stamp = models.CharField(max_length=400, default="", db_default="", blank=True)  # of its days' data; "" not known
    approved = models.DateTimeField(null=True, blank=True)
    approved_by = models.CharField(max_length=150, default="", blank=True)
    published = models.DateTimeField(null=True, blank=True)
    published_by = models.CharField(max_length=150, default="", blank=True)

    objects = ReportQuerySet.as_manager()

    class Meta:
        ordering = ["-last", "-first", "cluster", "-version"]
        constraints = [
            models.CheckConstraint(condition=Q(first__lte=F("last")), name="reports_report_days"),
            models.UniqueConstraint(fields=["cluster", "first", "last", "version"], name="reports_report_version"),
            models.UniqueConstraint(
                fields=["cluster", "first", "last"], condition=Q(state__in=["draft", "approved"]),
                name="reports_report_open",
            ),
            models.UniqueConstraint(
                fields=["cluster", "first", "last"], condition=Q(state="published"), name="reports_report_published"
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.cluster} {self.period.name} version {self.version}"

    def get_absolute_url(self) -> str:
        return reverse("report", kwargs={"cluster": self.cluster.name, "period": self.period.name})

    @property
    def period(self) -> Period:
        """The days that it is about."""
        return Period(self.first, self.last)

    @property
    def is_open(self) -> bool:
        """Whether it is still worked on: a draft, or an approved one."""
        return self.state in OPEN

    @property
    def ends(self) -> datetime:
        """The first instant behind its period."""
        return self.period.ends

    @property
    def is_over(self) -> bool:
        """Whether its period is over, so that it can be approved."""
        return self.ends <= clock.now()

    @property
    def is_intact(self) -> bool:
        """Whether the content still is what its digest was taken of."""
        return digest_of(self.content) == self.digest


OPEN: Final = (Report.State.DRAFT, Report.State.APPROVED)


class Drafting(models.Model):
    """A period that somebody wants drafted; the row goes when it is. `fault` says why the last try came to nothing.

    `asked_by` is null for what the calendar asks for.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    first = models.DateField()
    last = models.DateField()
    asked = models.DateTimeField()
    asked_by = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    fault = models.CharField(max_length=500, default="", blank=True)

    class Meta:
        ordering = ["-last", "-first", "cluster"]
        constraints = [models.UniqueConstraint(fields=["cluster", "first", "last"], name="reports_drafting_period")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.period.name}"

    @property
    def headline(self) -> str:
        """What is going on, in one sentence."""
        what = f"{capfirst(self.period.title)} of {self.cluster}"
        return f"{what} could not be drafted." if self.fault else f"{what} is being drafted."

    @property
    def period(self) -> Period:
        """The days that are to be drafted."""
        return Period(self.first, self.last)

"""Monthly reports as they were drafted and published."""

import hashlib
from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.urls import reverse

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
    """One version of a cluster's month. A draft may be rebuilt; what was published never changes again.

    `content` is `portal.reports.monthly.Content` as JSON, `digest` its SHA-256.
    """

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        PUBLISHED = "published", "Published"
        SUPERSEDED = "superseded", "Superseded"

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+")
    month = models.DateField()  # its first day
    version = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=12, choices=State.choices, default=State.DRAFT)
    content = models.JSONField()
    digest = models.CharField(max_length=64)
    built = models.DateTimeField(default=clock.now)
    built_by = models.CharField(max_length=150)
    generation = models.BigIntegerField(default=0, db_default=0)  # of the cluster's data that it was measured on
    published = models.DateTimeField(null=True, blank=True)
    published_by = models.CharField(max_length=150, default="", blank=True)

    objects = ReportQuerySet.as_manager()

    class Meta:
        ordering = ["-month", "cluster", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "month", "version"], name="reports_report_version"),
            models.UniqueConstraint(
                fields=["cluster", "month"], condition=Q(state="draft"), name="reports_report_draft"
            ),
            models.UniqueConstraint(
                fields=["cluster", "month"], condition=Q(state="published"), name="reports_report_published"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.month:%Y-%m} version {self.version}"

    def get_absolute_url(self) -> str:
        return reverse("report", kwargs={"cluster": self.cluster.name, "month": f"{self.month:%Y-%m}"})

    @property
    def ends(self) -> datetime:
        """The first instant behind its month."""
        return Period.month(self.month.year, self.month.month).ends

    @property
    def is_over(self) -> bool:
        """Whether its month is over, so that it can be published."""
        return self.ends <= clock.now()

    @property
    def is_intact(self) -> bool:
        """Whether the content still is what its digest was taken of."""
        return digest_of(self.content) == self.digest


class Drafting(models.Model):
    """A month that somebody wants drafted; the row goes when it is. `fault` says why the last try came to nothing.

    `asked_by` is null for what the calendar asks for.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    month = models.DateField()  # its first day
    asked = models.DateTimeField()
    asked_by = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    fault = models.CharField(max_length=500, default="", blank=True)

    class Meta:
        ordering = ["-month", "cluster"]
        constraints = [models.UniqueConstraint(fields=["cluster", "month"], name="reports_drafting_month")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.month:%Y-%m}"

    @property
    def headline(self) -> str:
        """What is going on, in one sentence."""
        what = f"{self.month:%B %Y} of {self.cluster}"
        return f"{what} could not be drafted." if self.fault else f"{what} is being drafted."

    @property
    def period(self) -> Period:
        """The month."""
        return Period.month(self.month.year, self.month.month)

"""Findings: one thing a detector saw at one place and time. Never the secret itself."""

from typing import Self

from django.db import models

from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, AgentSession, Cluster, ClusterUser, Lab
from security.models import choices
from security.models.incidents import Incident, concerning


class FindingQuerySet(models.QuerySet["Finding"]):
    """Findings, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """As for incidents: a PI sees the lab's findings even where an incident also holds others."""
        return self if actor.sees_facility else self.filter(concerning(actor))


class Finding(models.Model):
    """What a detector saw, redacted, with how it knows whose it is."""

    Kind, Severity, Surface = choices.Kind, choices.Severity, choices.Surface

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="findings")
    kind = models.CharField(max_length=24, choices=choices.Kind.choices)
    severity = models.CharField(max_length=8, choices=choices.Severity.choices)
    is_rated = models.BooleanField(default=False)  # the detector gave the severity; else it is the kind's own
    title = models.CharField(max_length=200, default="", blank=True)
    reasons = models.JSONField(default=list, blank=True)  # the detector's words for why it is this bad
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="findings")
    host = models.CharField(max_length=100, default="", blank=True)
    cluster_user = models.ForeignKey(
        ClusterUser, on_delete=models.PROTECT, null=True, blank=True, related_name="findings"
    )
    lab = models.ForeignKey(Lab, on_delete=models.PROTECT, null=True, blank=True, related_name="findings")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, null=True, blank=True, related_name="findings")
    session = models.ForeignKey(AgentSession, on_delete=models.SET_NULL, null=True, blank=True, related_name="findings")
    method = models.CharField(max_length=40, default="", blank=True)  # how we know whose it is
    confidence = models.FloatField(null=True, blank=True)  # of the detector, 0 to 1
    detector = models.CharField(max_length=60)
    surface = models.CharField(max_length=12, choices=choices.Surface.choices, default=choices.Surface.OTHER)
    place = models.CharField(max_length=300, default="", blank=True)
    readable_by = models.CharField(max_length=100, default="", blank=True)
    evidence = models.TextField(max_length=4000, default="", blank=True)  # redacted
    masks = models.JSONField(default=list, blank=True)  # the parts of the evidence that stand for secrets
    preview = models.CharField(max_length=80, default="", blank=True)  # kind and last four characters
    fingerprint = models.CharField(max_length=64, default="", blank=True)  # keyed; same secret, same value
    occurred = models.DateTimeField()
    received = models.DateTimeField(default=clock.now)
    source = models.CharField(max_length=150)  # who reported it
    dedup_key = models.CharField(max_length=64)
    key = models.CharField(max_length=64, unique=True)  # what, whose, where, when: sent twice it is one row

    objects = FindingQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["incident", "occurred"], name="security_finding_incident"),
            models.Index(fields=["kind", "occurred"], name="security_finding_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.host}"

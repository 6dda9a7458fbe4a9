"""Incidents and what happened to them."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.urls import reverse

from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, Cluster, ClusterUser, Hold, Lab, User
from security.engine import incidents as rules
from security.models import choices


def incident_number(pk: int) -> str:
    """Return the name people call an incident by."""
    return f"INC-{pk:04d}"


def concerning(actor: Actor) -> Q:
    """Return the condition under which somebody without a role of the facility may see a finding or an incident.

    A PI or lab manager sees those of the lab, a person those about themselves and the agents they answer for. Agents
    see none: whoever may be contained is not told by this way.
    """
    if not actor.is_person or actor.user is None:
        return Q(pk=None)
    about_self = Q(cluster_user__user=actor.user) | Q(agent__owner=actor.user)
    return Q(lab_id__in=actor.managed_lab_ids) | about_self


class IncidentQuerySet(models.QuerySet["Incident"]):
    """Incidents, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff, InfoSec and auditors see all; others as `concerning` says."""
        return self if actor.sees_facility else self.filter(concerning(actor))

    def open(self) -> Self:
        """Those that somebody still has to work on."""
        return self.filter(state__in=choices.OPEN)

    def past_their_time(self) -> Self:
        """Open ones whose next step is late."""
        return self.open().filter(due_at__lt=clock.now())


class Incident(models.Model):
    """Findings that belong together, with a state, a clock and somebody who works on it."""

    Kind, Severity, State = choices.Kind, choices.Severity, choices.State

    title = models.CharField(max_length=200)
    kind = models.CharField(max_length=24, choices=choices.Kind.choices)
    severity = models.CharField(max_length=8, choices=choices.Severity.choices)
    state = models.CharField(max_length=12, choices=choices.State.choices, default=choices.State.NEW)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="incidents")
    host = models.CharField(max_length=100, default="", blank=True)
    lab = models.ForeignKey(Lab, on_delete=models.PROTECT, null=True, blank=True, related_name="incidents")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, null=True, blank=True, related_name="incidents")
    cluster_user = models.ForeignKey(
        ClusterUser, on_delete=models.PROTECT, null=True, blank=True, related_name="incidents"
    )
    fingerprint = models.CharField(max_length=64, default="", blank=True)  # keyed; same secret, same value
    dedup_key = models.CharField(max_length=64)
    is_current = models.BooleanField(default=True)  # the one incident of its key that findings go to
    opened = models.DateTimeField(default=clock.now)
    reopened = models.DateTimeField(null=True, blank=True)
    triaged_at = models.DateTimeField(null=True, blank=True)
    contained_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_reason = models.CharField(max_length=500, default="", blank=True)
    due_at = models.DateTimeField(null=True, blank=True)  # when its next step is due; null once closed
    assignee = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    hold = models.ForeignKey(Hold, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    sightings = models.PositiveIntegerField(default=0)  # recounted from its findings whenever one arrives
    last_seen = models.DateTimeField(null=True, blank=True)

    objects = IncidentQuerySet.as_manager()

    class Meta:
        constraints = [
            # Two equal findings at the same moment open one incident: the second insert loses to this.
            models.UniqueConstraint(
                fields=["dedup_key"], condition=Q(is_current=True), name="security_incident_one_current"
            )
        ]
        indexes = [
            models.Index(fields=["state", "due_at"], name="security_incident_due"),
            models.Index(fields=["kind", "opened"], name="security_incident_kind"),
            models.Index(fields=["lab", "state"], name="security_incident_lab"),
        ]

    def __str__(self) -> str:
        return self.number

    def get_absolute_url(self) -> str:
        return reverse("incident", kwargs={"pk": self.pk})

    @property
    def number(self) -> str:
        """The name people call it by."""
        return incident_number(self.pk)

    @property
    def is_open(self) -> bool:
        return self.state in choices.OPEN

    @property
    def clock_from(self) -> datetime:
        """When its clocks started: at its opening, or when it opened again."""
        return self.reopened or self.opened

    def next_due(self, *, state: str = "", severity: str = "") -> datetime | None:
        """Return when the next step is due in `state` at `severity` (its own where left out)."""
        return rules.next_deadline(
            rules.Severity(severity or self.severity), rules.State(state or self.state), self.clock_from
        )


class IncidentEventQuerySet(models.QuerySet["IncidentEvent"]):
    """What happened, as somebody may see it."""

    def visible_to(self, actor: Actor) -> Self:
        """Notes are for the facility; whoever else sees the incident sees the rest."""
        return self if actor.sees_facility else self.exclude(kind=IncidentEvent.Kind.NOTE)


class IncidentEvent(models.Model):
    """One thing that happened to an incident: who did what, when, and in which words."""

    class Kind(models.TextChoices):
        OPENED = "opened", "Opened"
        MOVED = "moved", "Changed state"
        RAISED = "raised", "Raised severity"
        ASSIGNED = "assigned", "Assigned"
        NOTE = "note", "Note"
        HELD = "held", "Held the agent"
        RELEASED = "released", "Released the agent"

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(default=clock.now)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    actor_kind = models.CharField(max_length=16)
    actor_label = models.CharField(max_length=150)
    old = models.CharField(max_length=150, default="", blank=True)
    new = models.CharField(max_length=150, default="", blank=True)
    text = models.TextField(max_length=4000, default="", blank=True)

    objects = IncidentEventQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["incident", "at"], name="security_event_incident")]

    def __str__(self) -> str:
        return f"{self.actor_label} {self.kind} {self.incident_id}"

"""Agents and the sessions in which they work."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.urls import reverse

from portal.core import clock
from portal.core.fields import EpochField
from principals.actors import Actor
from principals.engine.harnesses import harness_name
from principals.engine.hours import Hours, read_hours
from principals.models.clusters import Cluster, ClusterUser
from principals.models.people import Lab, User


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff see all; a person their own and those of their labs; an agent itself."""
        if actor.sees_facility:
            return self
        if actor.agent is not None:
            return self.filter(pk=actor.agent.pk)
        if actor.user is None:
            return self.none()
        return self.filter(Q(owner=actor.user) | Q(lab_id__in=actor.member_lab_ids | actor.granted_lab_ids))

    def active(self) -> Self:
        """Those that may work now."""
        return self.filter(status=Agent.Status.ACTIVE, expires__gt=clock.now())


class Agent(models.Model):
    """A coding agent that acts for a person of a lab. It never has more rights than its owner."""

    class Status(models.TextChoices):
        REQUESTED = "requested", "Requested"
        ACTIVE = "active", "Active"
        SUSPENDED = "suspended", "Suspended"
        RETIRED = "retired", "Retired"

    class Autonomy(models.TextChoices):
        SUPERVISED = "supervised", "Supervised"
        UNATTENDED = "unattended", "Unattended"

    name = models.CharField(max_length=40, unique=True)
    harness = models.CharField(max_length=32)  # a slug of principals/engine/harnesses.toml
    harness_version = models.CharField(max_length=40, default="", blank=True)  # as declared
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="agents")
    lab = models.ForeignKey(Lab, on_delete=models.PROTECT, related_name="agents")
    purpose = models.TextField(max_length=2000)
    hosts = models.JSONField(default=list, blank=True)  # login nodes it may use; empty: any
    partitions = models.JSONField(default=list, blank=True)  # partitions it needs; empty: any
    accounts = models.JSONField(default=list, blank=True)  # Slurm accounts of its lab; empty: any its owner may charge
    hours = models.JSONField(default=dict, blank=True)  # as principals.engine.hours has them; empty: any hour
    autonomy = models.CharField(max_length=12, choices=Autonomy.choices, default=Autonomy.SUPERVISED)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.REQUESTED)
    requested_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(default=clock.now)
    status_changed = models.DateTimeField(default=clock.now)
    expires = models.DateTimeField()
    last_seen = models.DateTimeField(null=True, blank=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index(fields=["lab", "status"], name="principals_agent_lab"),
            models.Index(fields=["owner", "status"], name="principals_agent_owner"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("agent", kwargs={"name": self.name})

    @property
    def is_expired(self) -> bool:
        return self.expires <= clock.now()

    @property
    def working_hours(self) -> Hours | None:
        """The hours it declares; None: any."""
        return read_hours(self.hours)

    def move(self, *, old: str, new: str) -> bool:
        """Change the status by conditional update; say whether this call was the one that did."""
        at = clock.now()
        moved = Agent.objects.filter(pk=self.pk, status=old).update(status=new, status_changed=at)
        if moved:
            self.status, self.status_changed = new, at
        return bool(moved)


class AgentApproval(models.Model):
    """A yes to an agent's registration: by the lab, and by staff where its risk tier asks for it."""

    class Kind(models.TextChoices):
        LAB = "lab", "PI or lab manager"
        STAFF = "staff", "Research-computing staff"

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="approvals")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    by_rule = models.BooleanField(default=False)  # by the lab's own rule, which `by` switched on
    at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "kind"], name="principals_agentapproval_kind")]

    def __str__(self) -> str:
        return f"{self.agent} approved by {self.by} ({self.kind})"


class AgentSessionQuerySet(models.QuerySet["AgentSession"]):
    """Sessions, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff see all; a person their own and those of labs they manage; an agent its own.

        A member's own shells that a study observes are no lab's to see.
        """
        if actor.sees_facility:
            return self
        if actor.agent is not None:
            return self.filter(agent=actor.agent)
        if actor.user is None:
            return self.none()
        studied = Q(kind=AgentSession.Kind.INTERACTIVE) & ~Q(process="")
        return self.filter(
            Q(cluster_user__user=actor.user)
            | Q(agent__lab_id__in=actor.visible_lab_ids)
            # What a member does for another lab is that lab's to see.
            | (Q(agent=None, cluster_user__user__memberships__lab_id__in=actor.visible_lab_ids) & ~studied)
        ).distinct()


class AgentSession(models.Model):
    """A stretch of work on one host under one login name: of an agent's harness, or of a person at a shell.

    Declared by a harness (`process` is ""), seen by a collector, or both: then times are the collector's, and what was
    declared stands in its `declaration`. `agent` is set where it belongs to a registered agent.
    """

    class Kind(models.TextChoices):
        AGENT = "agent", "Agent harness"
        INTERACTIVE = "interactive", "Interactive shell"

    class Place(models.TextChoices):
        LOGIN = "login", "Login node"
        JOB = "job", "In a job"
        SSH = "ssh", "Over SSH, without a terminal"
        GATEWAY = "gateway", "Behind a gateway"
        AGENT_HOST = "agent_host", "Host for agents"

    class Evidence(models.TextChoices):
        SSH_KEY = "ssh_key", "An agent’s own SSH key"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="sessions")
    cluster_user = models.ForeignKey(ClusterUser, on_delete=models.CASCADE, related_name="sessions")
    host = models.CharField(max_length=100)
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.AGENT)
    harness = models.CharField(max_length=32, default="", blank=True)  # empty for an interactive shell
    place = models.CharField(max_length=10, choices=Place.choices, default=Place.LOGIN, db_default=Place.LOGIN)
    # What tells a collector that it is an agent's, where that is no program of its own that runs.
    evidence = models.CharField(max_length=8, choices=Evidence.choices, default="", blank=True, db_default="")
    raw_job_id = models.BigIntegerField(null=True, blank=True)  # of the job that it runs in
    started = EpochField()
    ended = EpochField(null=True, blank=True)
    last_seen = EpochField(null=True, blank=True)  # when it last did something, as a collector saw it
    # Its root process as a collector knows it: the boot's id, the process id and its start in ticks; "" where declared.
    process = models.CharField(max_length=80, default="", blank=True)
    campaign = models.CharField(max_length=100, default="", blank=True)
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="sessions")
    source = models.CharField(max_length=40, default="declared")
    received = models.DateTimeField(default=clock.now)

    objects = AgentSessionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "cluster_user", "host", "kind", "harness", "started", "process"],
                name="principals_agentsession_natural_key",
            ),
            models.UniqueConstraint(
                fields=["cluster", "host", "process", "kind"],
                condition=~Q(process=""),
                name="principals_agentsession_process",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster_user", "started"], name="principals_session_user"),
            models.Index(fields=["agent", "started"], name="principals_session_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.harness or self.kind} on {self.host}"

    @property
    def harness_name(self) -> str:
        """Its harness as people call it; "" for a shell."""
        return harness_name(self.harness) if self.harness else ""

    @property
    def age_s(self) -> int:
        """Seconds from start to end, or to now while it goes on."""
        end: datetime = self.ended or clock.now()
        return int((end - self.started).total_seconds())


class SessionDeclaration(models.Model):
    """What was declared of a session that a collector saw too: so much of it as a row of its own would say."""

    session = models.OneToOneField(AgentSession, on_delete=models.CASCADE, related_name="declaration")
    started = EpochField()
    ended = EpochField(null=True, blank=True)
    campaign = models.CharField(max_length=100, default="", blank=True)
    source = models.CharField(max_length=40, default="declared")
    received = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return f"declared from {self.started}"

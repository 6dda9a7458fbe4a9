"""The acceptable-use policy, version by version, what is being written of the next, and who accepted what."""

import hashlib
from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import F
from django.urls import reverse

from policies.engine import aup as aup_engine
from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, User


class AupVersionQuerySet(models.QuerySet["AupVersion"]):
    """Published versions by the day from which they count."""

    def in_force(self, at: datetime) -> Self:
        """Those whose day has come; the first is the one that is in force."""
        return self.filter(effective__lte=at)

    def required(self, at: datetime) -> Self:
        """Those whose grace is over; an agent needs the first of them, or a newer one."""
        return self.filter(holds_from__lte=at)


class AupVersion(models.Model):
    """A version of the policy as it was published; its TOML text is the one source of page, agent text and checks.

    It is never edited. From `effective` on it is in force, from `holds_from` on agents without it are held.
    """

    version = models.CharField(max_length=20, unique=True)
    source = models.TextField()
    digest = models.CharField(max_length=80)
    published = models.DateTimeField(default=clock.now)
    published_by = models.CharField(max_length=150)
    effective = models.DateTimeField(default=clock.now)
    holds_from = models.DateTimeField(default=clock.now)

    objects = AupVersionQuerySet.as_manager()

    class Meta:
        get_latest_by = "published"
        ordering = ["-published", "-pk"]

    def __str__(self) -> str:
        return self.version

    def get_absolute_url(self) -> str:
        return reverse("aup-version", kwargs={"version": self.version})

    @property
    def policy(self) -> aup_engine.Aup:
        """The policy as text and clauses."""
        return aup_engine.parse_aup(self.source)


class AupDraft(models.Model):
    """A version that is being written. Publishing it makes a version and ends it."""

    source = models.TextField()
    pack = models.CharField(max_length=40, default="", blank=True)  # where it started
    written_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    changed = models.DateTimeField(default=clock.now)

    class Meta:
        ordering = ["-changed", "-pk"]

    def __str__(self) -> str:
        return f"draft {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("aup-draft", kwargs={"pk": self.pk})

    @property
    def revision(self) -> str:
        """A name for exactly what stands in it now; who saves says on which revision they wrote."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def policy(self) -> aup_engine.Aup:
        """What it would be."""
        return aup_engine.parse_aup(self.source)


class How(models.TextChoices):
    """Where somebody was when they accepted a version: what they had before them."""

    REGISTRATION = "registration", "Registering the agent"
    AGENT_PAGE = "agent_page", "The agent’s page"
    AUP_PAGE = "aup_page", "The page of the policy"
    UNKNOWN = "", "Not noted"


class AupAcceptanceQuerySet(models.QuerySet["AupAcceptance"]):
    """Acceptances, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Those of the agents that the actor may see."""
        return self.filter(agent__in=Agent.objects.visible_to(actor))

    def standing(self) -> Self:
        """Those under whoever answers for the agent now: one from before a hand-over does not count any more."""
        return self.filter(owner=F("agent__owner"))


class AupAcceptance(models.Model):
    """A person accepted a version for an agent, and for who answered for it then.

    `digest` names the exact policy they were shown, `how` where.
    """

    version = models.ForeignKey(AupVersion, on_delete=models.PROTECT, related_name="acceptances")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="aup_acceptances")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=80)
    at = models.DateTimeField(default=clock.now)
    how = models.CharField(max_length=12, choices=How.choices, default="", blank=True)

    objects = AupAcceptanceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "agent", "owner"], name="policies_aupacceptance_owner")
        ]

    def __str__(self) -> str:
        return f"{self.version} for {self.agent}"


class AupPersonAcceptanceQuerySet(models.QuerySet["AupPersonAcceptance"]):
    """Acceptances of people, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Those of the people that the actor may see."""
        return self.filter(user__in=User.objects.visible_to(actor))


class AupPersonAcceptance(models.Model):
    """A person accepted a version for themself: whoever accepts for an agent has read it, too."""

    version = models.ForeignKey(AupVersion, on_delete=models.PROTECT, related_name="people")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="aup_acceptances")
    digest = models.CharField(max_length=80)
    at = models.DateTimeField(default=clock.now)
    how = models.CharField(max_length=12, choices=How.choices, default="", blank=True)

    objects = AupPersonAcceptanceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "user"], name="policies_auppersonacceptance_user")]
        verbose_name = "AUP acceptance of a person"
        verbose_name_plural = "AUP acceptances of people"

    def __str__(self) -> str:
        return f"{self.version} by {self.user}"

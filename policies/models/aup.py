"""The acceptable-use policy, version by version, and its acceptances."""

from typing import Self

from django.db import models

from policies.engine import aup as aup_engine
from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, User


class AupVersion(models.Model):
    """A version of the policy as it was published; its TOML text is the one source of page, agent text and checks."""

    version = models.CharField(max_length=20, unique=True)
    source = models.TextField()
    digest = models.CharField(max_length=80)
    published = models.DateTimeField(default=clock.now)
    published_by = models.CharField(max_length=150)

    class Meta:
        get_latest_by = "published"
        ordering = ["-published"]

    def __str__(self) -> str:
        return self.version

    @property
    def policy(self) -> aup_engine.Aup:
        """The policy as clauses."""
        return aup_engine.parse_aup(self.source)


class AupAcceptanceQuerySet(models.QuerySet["AupAcceptance"]):
    """Acceptances, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Those of the agents that the actor may see."""
        return self.filter(agent__in=Agent.objects.visible_to(actor))


class AupAcceptance(models.Model):
    """A person accepted a version for an agent; `digest` names the exact text they were shown."""

    version = models.ForeignKey(AupVersion, on_delete=models.PROTECT, related_name="acceptances")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="aup_acceptances")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=80)
    at = models.DateTimeField(default=clock.now)

    objects = AupAcceptanceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "agent"], name="policies_aupacceptance_agent")]

    def __str__(self) -> str:
        return f"{self.version} for {self.agent}"

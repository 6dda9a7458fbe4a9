"""Extensions of harnesses, their releases, and what was decided about each."""

from typing import Any, Self

from django.db import models
from django.db.models import Q
from django.urls import reverse

from policies.engine import extensions as engine
from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, User

ADMITTED = ("admitted", "admitted_with_conditions")


class Extension(models.Model):
    """A skill, plugin, MCP server or hook, by its identity."""

    class Kind(models.TextChoices):
        SKILL = "skill", "Skill"
        PLUGIN = "plugin", "Plugin"
        MCP_SERVER = "mcp_server", "MCP server"
        HOOK = "hook", "Hook"

    kind = models.CharField(max_length=12, choices=Kind.choices)
    identity = models.CharField(max_length=engine.IDENTITY_MAX)
    created = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["identity", "kind"], name="policies_extension_identity")]

    def __str__(self) -> str:
        return self.identity


class ExtensionReleaseQuerySet(models.QuerySet["ExtensionRelease"]):
    """Releases, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff, InfoSec and auditors see all; everybody what is admitted and what they submitted themselves."""
        if actor.sees_facility:
            return self
        own = Q(pk__in=[])
        if actor.agent is not None:
            own = Q(submitted_by_agent=actor.agent)
        elif actor.user is not None:
            own = Q(submitted_by=actor.user)
        return self.filter(own | Q(state__in=ADMITTED))

    def admitted(self) -> Self:
        """Those a harness may load."""
        return self.filter(state__in=ADMITTED)


class ExtensionRelease(models.Model):
    """One release as submitted: an admission holds for this content digest alone.

    Denied and revoked releases are never revived; the same content may be submitted anew, as a new row.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        ADMITTED = "admitted", "Admitted"
        ADMITTED_WITH_CONDITIONS = "admitted_with_conditions", "With conditions"
        DENIED = "denied", "Denied"
        REVOKED = "revoked", "Revoked"

    extension = models.ForeignKey(Extension, on_delete=models.PROTECT, related_name="releases")
    version = models.CharField(max_length=80)
    digest = models.CharField(max_length=80)
    capabilities = models.JSONField(default=list)  # names of policies.engine.extensions.CAPABILITIES
    source_url = models.CharField(max_length=500, default="", blank=True)  # text: shown, never fetched
    description = models.TextField(max_length=4000, default="", blank=True)
    state = models.CharField(max_length=24, choices=State.choices, default=State.QUEUED)
    submitted_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    submitted_by_agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    submitted_at = models.DateTimeField(default=clock.now)
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=1000, default="", blank=True)
    conditions = models.CharField(max_length=1000, default="", blank=True)

    objects = ExtensionReleaseQuerySet.as_manager()

    class Meta:
        ordering = ["-submitted_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["extension", "version", "digest"], name="policies_extensionrelease_standing",
                condition=Q(state__in=["queued", *ADMITTED]),
            )
        ]  # fmt: skip
        indexes = [
            models.Index(fields=["state", "submitted_at"], name="policies_release_state"),
            models.Index(fields=["digest"], name="policies_release_digest"),
            models.Index(fields=["submitted_by", "submitted_at"], name="policies_release_submitter"),
        ]

    def __str__(self) -> str:
        return f"{self.extension} {self.version}"

    def get_absolute_url(self) -> str:
        return reverse("extension", kwargs={"pk": self.pk})

    @property
    def as_release(self) -> engine.ExtensionRelease:
        """The release as the engine takes it."""
        return engine.ExtensionRelease(
            kind=engine.ExtensionKind(self.extension.kind), identity=self.extension.identity, version=self.version,
            digest=self.digest, capabilities=frozenset(self.capabilities),
        )  # fmt: skip

    @property
    def can_do(self) -> list[engine.Capability]:
        """What it declares, heaviest first."""
        return list(engine.capability_diff([], self.capabilities).added)

    def move(self, *, old: str, new: str, **fields: Any) -> bool:
        """Change the state by conditional update; say whether this call was the one that did."""
        moved = ExtensionRelease.objects.filter(pk=self.pk, state=old).update(state=new, **fields)
        if moved:
            self.state = new
            for name, value in fields.items():
                setattr(self, name, value)
        return bool(moved)

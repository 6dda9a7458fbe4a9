"""Lessons learned from failures: the error, its cause, the fix, and who may read them."""

import secrets
from typing import Self

from django.db import models
from django.db.models import Count, Q
from django.urls import reverse

from memory.models.choices import ActorKind, Polarity, Scope, Source, Status
from portal.core import clock
from principals.actors import Actor
from principals.models import Agent, Cluster, Lab, User


def new_public_id() -> str:
    """Return the id by which a lesson is named outside; it tells nothing of how many there are."""
    return f"l_{secrets.token_hex(6)}"


class LessonQuerySet(models.QuerySet["Lesson"]):
    """Lessons, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """A project's are its owner's, a lab's its members', a cluster's everybody's; never another lab's.

        An agent sees what is in force: its owner's that belong to its own lab or to none, its lab's, the clusters'.
        People also see what has been superseded; drafts and withdrawn ones only those who wrote them or decide on them.
        """
        if actor.is_system:
            return self
        if actor.user is None:
            return self.none()
        if actor.agent is not None:
            own = Q(scope=Scope.PROJECT, owner=actor.user) & (Q(lab=None) | Q(lab=actor.agent.lab_id))
            shared = Q(scope=Scope.LAB, lab=actor.agent.lab_id) | Q(scope=Scope.CLUSTER)
            return self.filter(own | shared, status=Status.ACTIVE)
        return self.filter(self._for_person(actor))

    @staticmethod
    def _for_person(actor: Actor) -> Q:
        own = Q(scope=Scope.PROJECT, owner=actor.user)
        shared = Q(scope=Scope.LAB, lab__in=actor.member_lab_ids) | Q(scope=Scope.CLUSTER)
        written = Q(author_user=actor.user) & (Q(scope=Scope.CLUSTER) | Q(lab__in=actor.member_lab_ids))
        lab_decides = Q(scope=Scope.LAB, lab__in=actor.managed_lab_ids)
        from_lab = Q(scope=Scope.CLUSTER, source_lab__in=actor.managed_lab_ids)
        seen = own | (shared & Q(status__in=[Status.ACTIVE, Status.SUPERSEDED])) | written | lab_decides | from_lab
        return seen | Q(scope=Scope.CLUSTER) if actor.sees_facility else seen

    def active(self) -> Self:
        """Those in force."""
        return self.filter(status=Status.ACTIVE)

    def waiting(self) -> Self:
        """Those that wait for an approval."""
        return self.filter(status=Status.DRAFT)

    def with_evidence(self) -> Self:
        """Add `confirmations` and `refutations`: how many others, each once, confirm or refute it."""
        return self.annotate(
            confirmations=Count("evidence", filter=Q(evidence__polarity=Polarity.CONFIRMS)),
            refutations=Count("evidence", filter=Q(evidence__polarity=Polarity.REFUTES)),
        )


class Lesson(models.Model):
    """A failure, its cause and its fix, in one scope.

    Texts are data of people and agents, redacted before they are stored, and shown as text only. Nothing rewrites them:
    a wider scope gets a new row (`derived_from`), and evidence is rows of its own.
    """

    public_id = models.CharField(max_length=20, unique=True, default=new_public_id)
    scope = models.CharField(max_length=8, choices=Scope.choices)
    scope_key = models.CharField(max_length=60)  # `project:<user>:<lab or 0>`, `lab:<lab>`, `cluster:<cluster>`
    owner = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="lessons")
    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, null=True, blank=True, related_name="lessons")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, blank=True, related_name="lessons")
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.ACTIVE)
    status_reason = models.CharField(max_length=500, default="", blank=True)

    error_text = models.TextField()
    normalised = models.TextField()
    kernel = models.TextField()
    parameters = models.JSONField(default=list, blank=True)  # versions that decide the cause: GLIBCXX_3.4.29, sm_120
    signature = models.CharField(max_length=12)
    normaliser_version = models.PositiveSmallIntegerField()
    cause = models.TextField()
    fix = models.TextField()
    check_words = models.TextField(default="", blank=True)  # how to tell this cause from another of the same error
    conditions = models.JSONField(default=list, blank=True)  # [{"key", "op", "value"}], see engine/conditions.py
    content_digest = models.CharField(max_length=64)

    source = models.CharField(max_length=12, choices=Source.choices)
    job_key = models.CharField(max_length=80, null=True, blank=True)  # noqa: DJ001 - null: no job is named
    author_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    author_label = models.CharField(max_length=150)
    author_user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    author_agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    derived_from = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="promotions"
    )
    lineage = models.CharField(max_length=20)  # the public id of the lesson that this one goes back to
    source_lab = models.ForeignKey(Lab, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    decided_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    decided = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(default=clock.now)
    changed = models.DateTimeField(default=clock.now)

    confirmations: int  # both by `with_evidence`
    refutations: int

    objects = LessonQuerySet.as_manager()

    class Meta:
        ordering = ["-created", "-pk"]
        indexes = [
            models.Index(fields=["signature", "status"], name="memory_lesson_signature"),
            models.Index(fields=["scope_key", "status", "signature"], name="memory_lesson_scope"),
            models.Index(fields=["lab", "status", "created"], name="memory_lesson_lab"),
            models.Index(fields=["owner", "scope", "created"], name="memory_lesson_owner"),
        ]
        constraints = [
            models.CheckConstraint(
                name="memory_lesson_scope_names_its_place",
                condition=Q(scope=Scope.PROJECT, owner__isnull=False, cluster__isnull=True)
                | Q(scope=Scope.LAB, lab__isnull=False, owner__isnull=True, cluster__isnull=True)
                | Q(scope=Scope.CLUSTER, cluster__isnull=False, owner__isnull=True, lab__isnull=True),
            ),
            models.UniqueConstraint(
                fields=["scope_key", "content_digest"], condition=Q(status=Status.ACTIVE), name="memory_lesson_once"
            ),
            models.UniqueConstraint(
                fields=["derived_from", "scope_key"], condition=Q(status=Status.DRAFT), name="memory_lesson_one_draft"
            ),
        ]

    def __str__(self) -> str:
        return self.public_id

    def get_absolute_url(self) -> str:
        return reverse("lesson", kwargs={"public_id": self.public_id})

    @property
    def place(self) -> str:
        """Whose it is, in words: a lab's title, a cluster's name, or the owner's project."""
        if self.scope == Scope.LAB:
            return str(self.lab)
        return str(self.cluster) if self.scope == Scope.CLUSTER else f"project of {self.owner}"

    def move(self, *, old: str, new: str, reason: str = "", by: User | None = None) -> bool:
        """Change the status by conditional update; say whether this call was the one that did."""
        at = clock.now()
        changes = {"status": new, "status_reason": reason, "decided_by": by, "decided": at, "changed": at}
        moved = Lesson.objects.filter(pk=self.pk, status=old).update(**changes)
        if moved:
            for name, value in changes.items():
                setattr(self, name, value)
        return bool(moved)

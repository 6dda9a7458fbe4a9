"""Holds: the only way any app stops a principal."""

from typing import NamedTuple, Self

from django.db import models
from django.db.models import Q

from portal.core import clock


class Place(NamedTuple):
    """What a hold is on: a kind with the id of a row, or with a name where there is no row (a harness)."""

    kind: str
    id: int = 0
    name: str = ""


class HoldQuerySet(models.QuerySet["Hold"]):
    """Holds by their effect."""

    def in_force(self) -> Self:
        """Those neither lifted nor lapsed."""
        return self.filter(Q(until=None) | Q(until__gt=clock.now()), lifted_at=None)

    def on(self, subject_kind: str, subject_id: int = 0, subject_name: str = "") -> Self:
        """Those placed on one subject."""
        return self.filter(subject_kind=subject_kind, subject_id=subject_id, subject_name=subject_name)


class Hold(models.Model):
    """A reason why a subject may not act, with what would lift it. Holds stand side by side."""

    class Subject(models.TextChoices):
        USER = "user", "Person"
        LAB = "lab", "Lab"
        AGENT = "agent", "Agent"
        SERVICE = "service", "Service"
        OWNER = "owner", "A person’s agents"  # the person goes on
        HARNESS = "harness", "Agents of one harness"
        ALL = "all", "Every agent"

    class Standing(models.TextChoices):
        OWNER = "owner", "Its owner"
        LAB = "lab", "The lab"
        FACILITY = "facility", "The facility"

    class Kind(models.TextChoices):
        AUP = "aup", "Acceptable use"
        CONTAINMENT = "containment", "Containment"
        SUSPENSION = "suspension", "Suspension"
        FLOOD = "flood", "Flood"
        KILL_SWITCH = "kill_switch", "Kill switch"

    subject_kind = models.CharField(max_length=8, choices=Subject.choices)
    subject_id = models.BigIntegerField()  # 0 where the subject is no row
    subject_name = models.CharField(max_length=32, default="", blank=True)  # the slug of a harness
    kind = models.CharField(max_length=12, choices=Kind.choices)
    code = models.CharField(max_length=40)
    reason = models.CharField(max_length=500)
    remedy = models.CharField(max_length=500, default="", blank=True)
    placed_by = models.CharField(max_length=150)
    placed_at = models.DateTimeField(default=clock.now)
    until = models.DateTimeField(null=True, blank=True)
    # Who of lesser standing resumes what it stops is refused; empty where nobody's standing was noted.
    placed_as = models.CharField(max_length=8, choices=Standing.choices, default="", blank=True)
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.CharField(max_length=150, default="", blank=True)

    objects = HoldQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["subject_kind", "subject_id", "lifted_at"], name="principals_hold_subject")]

    def __str__(self) -> str:
        return f"{self.code} on {self.subject_kind} {self.subject_name or self.subject_id}"

    @property
    def rank(self) -> int:
        """How high whoever placed it stands: 0 for the owner or nobody that was noted, 1 the lab, 2 the facility."""
        return self.Standing.values.index(self.placed_as) if self.placed_as else 0

    @property
    def is_in_force(self) -> bool:
        """Whether it is neither lifted nor lapsed."""
        return self.lifted_at is None and (self.until is None or self.until > clock.now())

    @property
    def place(self) -> Place:
        """What it is on."""
        return Place(self.subject_kind, self.subject_id, self.subject_name)

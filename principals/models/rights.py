"""Rights of the person behind an agent: appeals, and who opened what is held about whom."""

from typing import Self

from django.db import models
from django.db.models import Q

from portal.core import clock
from principals.actors import Actor
from principals.models.agents import AgentSession
from principals.models.holds import Hold
from principals.models.people import User


class AppealQuerySet(models.QuerySet["Appeal"]):
    """Appeals, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff, InfoSec and auditors see all; a person their own; agents none."""
        if actor.sees_facility:
            return self
        return self.filter(person=actor.user) if actor.is_person and actor.user is not None else self.none()

    def waiting(self) -> Self:
        """Those that nobody answered."""
        return self.filter(state=Appeal.State.OPEN)


class Appeal(models.Model):
    """A person's word that a hold, or the label of a session, is wrong. Staff or InfoSec answer by `due`."""

    class State(models.TextChoices):
        OPEN = "open", "Waits for an answer"
        GRANTED = "granted", "Granted"
        REFUSED = "refused", "Refused"

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="appeals")
    hold = models.ForeignKey(Hold, on_delete=models.CASCADE, null=True, blank=True, related_name="appeals")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, null=True, blank=True, related_name="appeals")
    about = models.CharField(max_length=200)  # what is appealed, in words of ours
    reason = models.CharField(max_length=1000)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    filed = models.DateTimeField(default=clock.now)
    due = models.DateTimeField()
    answer = models.CharField(max_length=1000, default="", blank=True)
    answered = models.DateTimeField(null=True, blank=True)
    answered_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    objects = AppealQuerySet.as_manager()

    class Meta:
        ordering = ["due", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(hold=None, session__isnull=False) | Q(hold__isnull=False, session=None),
                name="principals_appeal_of_one",
            ),
            models.UniqueConstraint(
                fields=["person", "hold"], condition=Q(state="open", session=None), name="principals_appeal_hold"
            ),
            models.UniqueConstraint(
                fields=["person", "session"], condition=Q(state="open", hold=None), name="principals_appeal_session"
            ),
        ]
        indexes = [models.Index(fields=["state", "due"], name="principals_appeal_due")]

    def __str__(self) -> str:
        return self.about

    @property
    def is_late(self) -> bool:
        """Whether it waits past its time."""
        return self.state == self.State.OPEN and self.due <= clock.now()


class DataAccessQuerySet(models.QuerySet["DataAccess"]):
    """Who opened whose data, as somebody may see it."""

    def visible_to(self, actor: Actor) -> Self:
        """Auditors and InfoSec see all; a person what was opened of theirs, and what they opened; agents none."""
        if not actor.is_person or actor.user is None:
            return self.none()
        if actor.is_auditor or actor.is_infosec:
            return self
        return self.filter(Q(person=actor.user) | Q(by=actor.user))


class DataAccess(models.Model):
    """Somebody opened what is held about a named person, with the purpose that they gave. The person reads it."""

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="opened")
    by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    by_label = models.CharField(max_length=150)  # a login name of the host where no account of the portal acted
    what = models.CharField(max_length=100)
    purpose = models.CharField(max_length=500)
    at = models.DateTimeField(default=clock.now)

    objects = DataAccessQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [models.Index(fields=["person", "-at"], name="principals_dataaccess_person")]

    def __str__(self) -> str:
        return f"{self.by_label}: {self.what}"

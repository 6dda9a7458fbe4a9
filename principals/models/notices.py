"""What people were told, how they want to be told it, and the mails that tell it."""

import secrets
from typing import Self

from django.db import models
from django.db.models import Q

from portal.core import clock
from principals.actors import Actor
from principals.engine.notices import KINDS, How
from principals.models.people import User


def new_mail_id() -> str:
    """Return what a mail's Message-ID is made of: of its row alone, so that every attempt has the same."""
    return f"mail_{secrets.token_hex(12)}"


class NoticeQuerySet(models.QuerySet["Notice"]):
    """Notices, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """A person sees their own; nobody sees another's, and agents none."""
        return self.filter(person=actor.user) if actor.is_person and actor.user is not None else self.none()

    def unread(self) -> Self:
        """Those that nobody looked at."""
        return self.filter(read_at=None)


class NoticePreference(models.Model):
    """How a person wants to be told of one kind. Without a row it is as the kind says."""

    class Mailed(models.TextChoices):
        OFF = How.OFF.value, "Not at all"
        AT_ONCE = How.AT_ONCE.value, "At once"
        DAILY = How.DAILY.value, "Once a day"
        WEEKLY = How.WEEKLY.value, "Once a week"
        MONTHLY = How.MONTHLY.value, "Once a month"

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notice_preferences")
    kind = models.CharField(max_length=40)
    mailed = models.CharField(max_length=8, choices=Mailed.choices)
    to_webhooks = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["person", "kind"], name="principals_noticepreference_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.mailed}"


class NoticeMail(models.Model):
    """One mail to a person: the row of its work.

    Open → handed (in the instant before its text goes to the mail server) → sent; back to open where the server
    refused it for now, dead where it refused it for good or for days. Whoever is killed between handed and sent leaves
    what nobody can know: it becomes unsure, and is not sent again. `leased_until` is set while somebody sends it.
    """

    class State(models.TextChoices):
        OPEN = "open", "Waiting"
        HANDED = "handed", "Handed over"
        SENT = "sent", "Sent"
        UNSURE = "unsure", "Perhaps sent"
        DEAD = "dead", "Given up"

    public_id = models.CharField(max_length=32, unique=True, default=new_mail_id)
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notice_mails")
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    created = models.DateTimeField(default=clock.now)
    next_at = models.DateTimeField(default=clock.now)
    attempts = models.PositiveSmallIntegerField(default=0)
    leased_until = models.DateTimeField(null=True, blank=True)
    ended = models.DateTimeField(null=True, blank=True)
    words = models.CharField(max_length=200, default="", blank=True)  # ours, of the last attempt

    class Meta:
        indexes = [
            models.Index(fields=["state", "next_at"], name="principals_noticemail_due"),
            models.Index(fields=["person", "created"], name="principals_noticemail_hour"),
        ]

    def __str__(self) -> str:
        return self.public_id


class Notice(models.Model):
    """Something that a person is told, written in the transaction of what it tells. It always stands in the portal.

    `mail_at`: from when it may be mailed, null where it is not; `mail`: the mail that it went into. `key` keeps the
    same from being told twice.
    """

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=40)
    title = models.CharField(max_length=150)
    text = models.TextField(max_length=2000, default="", blank=True)
    url = models.CharField(max_length=300, default="", blank=True)  # a path of the portal
    key = models.CharField(max_length=120, default="", blank=True)
    created = models.DateTimeField(default=clock.now)
    read_at = models.DateTimeField(null=True, blank=True)
    is_digest = models.BooleanField(default=False)
    mail_at = models.DateTimeField(null=True, blank=True)
    mail = models.ForeignKey(NoticeMail, on_delete=models.SET_NULL, null=True, blank=True, related_name="notices")

    objects = NoticeQuerySet.as_manager()

    class Meta:
        ordering = ["-created", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["person", "key"], condition=~Q(key=""), name="principals_notice_once"),
        ]
        indexes = [
            models.Index(fields=["person", "-created"], name="principals_notice_person"),
            models.Index(fields=["mail_at"], condition=Q(mail=None), name="principals_notice_due"),
            models.Index(fields=["created"], name="principals_notice_created"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def kind_words(self) -> str:
        """What people call its kind; one that is no more by its name."""
        return KINDS[self.kind].words if self.kind in KINDS else self.kind

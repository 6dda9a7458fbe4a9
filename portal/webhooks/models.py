"""Webhooks of people, and what was sent for them. A delivery is the row of its work: it outlives whoever sends it."""

import secrets
from datetime import datetime, timedelta
from typing import Final, Self

from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from portal.core import clock
from principals.actors import Actor
from principals.models import User

OVERLAP: Final = timedelta(days=1)  # so long both keys sign after a roll-over


def new_webhook_id() -> str:
    """Return an id that nobody guesses and that says what it is of."""
    return f"wh_{secrets.token_hex(8)}"


def new_delivery_id() -> str:
    """Return an id for one message; every attempt carries the same."""
    return f"msg_{secrets.token_hex(12)}"


class WebhookQuerySet(models.QuerySet["Webhook"]):
    """Webhooks, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """A person sees their own; nobody sees another's, and agents none."""
        return self.filter(owner=actor.user) if actor.is_person and actor.user is not None else self.none()


class Webhook(models.Model):
    """An address that a person's events are sent to. No key is stored: it is derived from `pepper` and `generation`.

    `cursor` is the position up to which events were put into deliveries or were none of its topics.
    """

    class State(models.TextChoices):
        ON = "on", "On"
        OFF = "off", "Off"

    public_id = models.CharField(max_length=24, unique=True, default=new_webhook_id)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=60)
    address = models.CharField(max_length=300)
    topics = models.JSONField(default=list)
    state = models.CharField(max_length=4, choices=State.choices, default=State.ON)
    off_code = models.CharField(max_length=40, default="", blank=True)  # empty: its owner switched it off
    off_words = models.CharField(max_length=500, default="", blank=True)
    state_changed = models.DateTimeField(default=clock.now)
    created = models.DateTimeField(default=clock.now)
    cursor = models.BigIntegerField()
    generation = models.PositiveIntegerField(default=1)
    pepper = models.PositiveIntegerField()  # the number of the pepper that the key is derived from
    rolled = models.DateTimeField(null=True, blank=True)
    old_pepper = models.PositiveIntegerField(null=True, blank=True)
    dead_in_a_row = models.PositiveSmallIntegerField(default=0)
    is_slow = models.BooleanField(default=False)  # its last attempt took long or failed

    objects = WebhookQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="webhooks_webhook_name")]
        indexes = [models.Index(fields=["state", "cursor"], name="webhooks_webhook_state")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("webhook", kwargs={"webhook": self.public_id})

    @property
    def is_on(self) -> bool:
        """Whether events are sent to it."""
        return self.state == self.State.ON

    @property
    def both_until(self) -> datetime | None:
        """Until when the key before the present one signs too, or None where it does no more."""
        until = self.rolled + OVERLAP if self.rolled is not None else None
        return until if until is not None and until > clock.now() else None


class Delivery(models.Model):
    """One message for a webhook: the events of its `topics` from `first` to `last`, a ping, or word that some are lost.

    Open → delivered, or dead after the last attempt; a ping that fails once has failed. A dead one is sent again or
    dropped by its owner. `leased_until` is set while somebody sends it.
    """

    class Kind(models.TextChoices):
        EVENTS = "events", "Events"
        RESYNC = "resync", "Resync"
        PING = "ping", "Ping"

    class State(models.TextChoices):
        OPEN = "open", "Waiting"
        DELIVERED = "delivered", "Delivered"
        DEAD = "dead", "Dead letter"
        DROPPED = "dropped", "Dropped"
        FAILED = "failed", "Failed"

    public_id = models.CharField(max_length=32, unique=True, default=new_delivery_id)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    topics = models.JSONField(default=list)
    first = models.BigIntegerField(default=0)
    last = models.BigIntegerField(default=0)
    events = models.PositiveSmallIntegerField(default=0)
    is_again = models.BooleanField(default=False)  # a dead letter on its way again: others need not wait for it
    created = models.DateTimeField(default=clock.now)
    ended = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(default=clock.now)
    leased_until = models.DateTimeField(null=True, blank=True)
    tried = models.DateTimeField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    words = models.CharField(max_length=200, default="", blank=True)
    took_ms = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(first__lte=F("last")), name="webhooks_delivery_span"),
            models.UniqueConstraint(  # in order: the next span is made once this one is over
                fields=["webhook"], condition=Q(state="open", is_again=False) & ~Q(kind="ping"),
                name="webhooks_delivery_stream",
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(fields=["state", "next_at"], name="webhooks_delivery_due"),
            models.Index(fields=["webhook", "-id"], name="webhooks_delivery_latest"),
            models.Index(fields=["created"], name="webhooks_delivery_created"),
        ]

    def __str__(self) -> str:
        return self.public_id

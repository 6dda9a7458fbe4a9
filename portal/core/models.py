"""Rows of the kernel: audit, live events, idempotency keys, leases.

Actors and objects are plain columns, not foreign keys: the kernel stands below every app, and an audit row outlives
what it describes.
"""

from typing import Any, NoReturn

from django.db import models

from portal.core import clock


class Counter(models.Model):
    """A named number that only rises. Its row is the lock of whoever numbers rows with it."""

    name = models.CharField(max_length=40, primary_key=True)
    value = models.BigIntegerField(default=0)
    note = models.CharField(max_length=128, default="", blank=True)  # the audit chain keeps its last hash here

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


class Lease(models.Model):
    """The right of one process to do a thing alone, until it lapses. Taken by conditional update."""

    name = models.CharField(max_length=80, primary_key=True)
    holder = models.CharField(max_length=80)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} held by {self.holder}"


class AuditEvent(models.Model):
    """Who did what to which thing, for whom, and how it changed. Append only.

    `seq`, `prev_hash` and `hash` are set once by the sealer (`portal.core.audit`), after the row is committed. The hash
    covers `digest`, a salted digest of `payload`; so a payload can be erased and the chain still verifies.
    """

    at = models.DateTimeField(default=clock.now)
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=64)
    actor_label = models.CharField(max_length=150)
    on_behalf_of = models.CharField(max_length=150, default="", blank=True)
    verb = models.CharField(max_length=60)
    object_kind = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    object_label = models.CharField(max_length=200, default="", blank=True)
    lab_id = models.BigIntegerField(null=True, blank=True)  # whose people may see it; no FK, the kernel stands lowest
    payload = models.JSONField(null=True, blank=True)  # {"before": …, "after": …, "reason": …}; null once erased
    salt = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)
    request_id = models.CharField(max_length=64, default="", blank=True)
    seq = models.BigIntegerField(null=True, unique=True)
    prev_hash = models.CharField(max_length=64, default="", blank=True)
    hash = models.CharField(max_length=64, default="", blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["object_kind", "object_id"], name="core_audit_object"),
            models.Index(fields=["actor_kind", "actor_id"], name="core_audit_actor"),
            models.Index(fields=["lab_id", "at"], name="core_audit_lab"),
            models.Index(fields=["at"], name="core_audit_at"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_label} {self.verb} {self.object_kind} {self.object_label or self.object_id}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise RuntimeError("An audit event is never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("An audit event is never deleted.")


class LiveEvent(models.Model):
    """A piece of news for those who watch. Written without a position; the sequencer numbers committed rows.

    `seq`, never `id`, is the cursor: ids follow the start of a transaction, not its commit.
    """

    at = models.DateTimeField(default=clock.now)
    name = models.CharField(max_length=60)
    payload = models.JSONField(default=dict)
    topics = models.JSONField(default=list)  # what LiveEventTopic holds, so that the tail needs one query
    seq = models.BigIntegerField(null=True, unique=True)

    class Meta:
        indexes = [models.Index(fields=["at"], name="core_live_at")]

    def __str__(self) -> str:
        return f"{self.seq} {self.name}"


class LiveEventTopic(models.Model):
    """One topic of a live event, for catch-up queries scoped to what a viewer may see."""

    event = models.ForeignKey(LiveEvent, on_delete=models.CASCADE, related_name="topic_rows")
    topic = models.CharField(max_length=100)

    class Meta:
        indexes = [models.Index(fields=["topic", "event"], name="core_livetopic_topic")]

    def __str__(self) -> str:
        return self.topic


class IdempotencyKey(models.Model):
    """The first answer to a write, kept for a day, so that a retry gets the same answer and changes nothing."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"

    owner = models.CharField(max_length=80)  # the token: keys of two callers never meet
    key = models.CharField(max_length=200)
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=300)
    body_digest = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    status = models.PositiveSmallIntegerField(null=True)
    content_type = models.CharField(max_length=100, default="", blank=True)
    body = models.BinaryField(default=b"")
    created = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "key"], name="core_idempotencykey_owner_key")]
        indexes = [models.Index(fields=["created"], name="core_idempotencykey_created")]

    def __str__(self) -> str:
        return f"{self.owner} {self.key}"

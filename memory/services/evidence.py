"""Saying that a lesson held, or did not."""

from django.db import transaction

from memory import permissions
from memory.models import Lesson, LessonEvidence
from memory.models.choices import Polarity, Source
from memory.services import rows
from memory.services.content import clean_job_key
from portal.core.errors import Conflict
from principals.actors import Actor
from principals.permissions import can


def confirm_lesson(*, actor: Actor, lesson: Lesson, holds: bool = True, job_key: str = "") -> LessonEvidence:
    """Add a word for a lesson (`holds`) or against it, with the job where it was seen.

    A person and their agents are one voice: it counts once each way, and not on a lesson of their own. Saying the same
    again changes nothing. Errors: `NotAllowed`, `Invalid`, `Conflict` for an own lesson.
    """
    permissions.require(actor, "lesson.confirm", lesson, remedy="Only lessons in force that you may read.")
    job = clean_job_key(job_key)
    if lesson.evidence.filter(voice=rows.voice_of(actor), polarity=Polarity.ORIGIN).exists():
        raise Conflict(
            "It is your own lesson; others confirm it.", code="own_lesson", remedy="Withdraw it where it does not hold."
        )
    with transaction.atomic():
        found, created = _add(actor, lesson, Polarity.CONFIRMS if holds else Polarity.REFUTES, _kind(actor), job)
        if created:
            rows.note(actor, f"lesson.{'confirm' if holds else 'refute'}", lesson)
    return found


def add_voice(actor: Actor, lesson: Lesson, *, kind: str, job_key: str | None) -> None:
    """Count somebody who recorded a lesson that is known as one who confirms it; its own author counts once."""
    if lesson.evidence.filter(voice=rows.voice_of(actor), polarity=Polarity.ORIGIN).exists():
        return
    _, created = _add(actor, lesson, Polarity.CONFIRMS, kind, job_key)
    if created:
        rows.note(actor, "lesson.confirm", lesson)


def _kind(actor: Actor) -> str:
    if actor.agent is not None:
        return Source.AGENT
    return Source.OPERATOR if can(actor, "facility.run") else Source.USER


def _add(actor: Actor, lesson: Lesson, polarity: str, kind: str, job_key: str | None) -> tuple[LessonEvidence, bool]:
    return LessonEvidence.objects.get_or_create(
        lesson=lesson, voice=rows.voice_of(actor), polarity=polarity,
        defaults={
            "kind": kind, "actor_kind": actor.ref.kind, "actor_label": actor.ref.label, "user": actor.user,
            "agent": actor.agent, "job_key": job_key, "lab": actor.agent.lab if actor.agent else None,
        },
    )  # fmt: skip

"""Writing lessons: the row, the words it is found by, its first piece of evidence, the audit line and the news."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memory import events
from memory.engine.conditions import parse_condition
from memory.engine.match import words_of
from memory.engine.signature import Signature, sign
from memory.models import Lesson, LessonEvidence, LessonToken
from memory.models.choices import Polarity, Scope, Status
from memory.models.tokens import MAX_TOKEN
from memory.services.content import LessonContent, content_digest, nameless
from portal.core import audit, live
from principals.actors import Actor
from principals.models import Cluster, Lab, User

MAX_TOKENS = 500  # of one lesson; an error of 8,000 characters seldom has a hundred


@dataclass(frozen=True, slots=True)
class Place:
    """Where a lesson is kept: one scope and what it names."""

    scope: str
    owner: User | None = None
    lab: Lab | None = None
    cluster: Cluster | None = None
    source_lab: Lab | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """The scope as one word, by which the index is read."""
        if self.scope == Scope.PROJECT:
            return f"project:{self.owner.pk if self.owner else 0}:{self.lab.pk if self.lab else 0}"
        if self.scope == Scope.LAB:
            return f"lab:{self.lab.pk if self.lab else 0}"
        return f"cluster:{self.cluster.pk if self.cluster else 0}"


def voice_of(actor: Actor) -> str:
    """Return whose word it is: a person and every agent that acts for them are one voice."""
    return f"user:{actor.user.pk}" if actor.user is not None else actor.ref.kind


def author_columns(actor: Actor) -> dict[str, Any]:
    """Return the columns that say who wrote a lesson."""
    return {
        "author_kind": actor.ref.kind,
        "author_label": actor.ref.label,
        "author_user": actor.user,
        "author_agent": actor.agent,
    }


def text_columns(place: Place, content: LessonContent) -> dict[str, Any]:
    """Return the columns of a lesson's texts. Beyond its project the error is kept in its normalised form only."""
    signature = sign(content.error_text)
    kernel, normalised = signature.kernel, signature.normalised
    if place.scope != Scope.PROJECT:
        content, kernel, normalised = widened(place, content, signature)
    return {
        "error_text": content.error_text,
        "normalised": normalised,
        "kernel": kernel,
        "parameters": list(signature.parameters),
        "signature": signature.exact,
        "normaliser_version": signature.version,
        "cause": content.cause,
        "fix": content.fix,
        "check_words": content.check_words,
        "conditions": condition_rows(content.conditions),
        "content_digest": content_digest(signature.exact, content),
    }


def widened(place: Place, content: LessonContent, signature: Signature) -> tuple[LessonContent, str, str]:
    """Return content, kernel and normalised text as readers beyond the project may have them."""
    lab = place.lab or place.source_lab
    cause, fix, check, kernel, normalised = nameless(
        lab, content.cause, content.fix, content.check_words, signature.kernel, signature.normalised,
        keep_paths=place.scope == Scope.LAB,
    )  # fmt: skip
    error = normalised or kernel
    # A condition that names a person or a place says nothing to other readers.
    said = nameless(lab, *content.conditions, keep_paths=place.scope == Scope.LAB)
    kept = tuple(each for each, left in zip(content.conditions, said, strict=True) if each == left)
    told = replace(content, error_text=error, cause=cause, fix=fix, check_words=check, conditions=kept)
    return told, kernel, normalised


def condition_rows(conditions: tuple[str, ...]) -> list[dict[str, str]]:
    """Return conditions as they are kept."""
    parsed = [parse_condition(each) for each in conditions]
    return [{"key": each.key, "op": each.op, "value": each.value} for each in parsed]


def condition_texts(rows: list[dict[str, str]]) -> tuple[str, ...]:
    """Return kept conditions as they are written."""
    return tuple(f"{row['key']} {row['op']} {row['value']}" for row in rows)


def insert(place: Place, status: str, columns: Mapping[str, Any]) -> Lesson:
    """Write a lesson with its author's word as the first evidence; an active one can be found from then on."""
    lesson = Lesson(
        scope=place.scope, scope_key=place.key, owner=place.owner, lab=place.lab, cluster=place.cluster,
        source_lab=place.source_lab, status=status, **columns,
    )  # fmt: skip
    lesson.lineage = lesson.lineage or lesson.public_id
    lesson.save(force_insert=True)
    LessonEvidence.objects.create(
        lesson=lesson, kind=lesson.source, polarity=Polarity.ORIGIN, job_key=lesson.job_key,
        voice=f"user:{lesson.author_user_id}" if lesson.author_user_id else lesson.author_kind,
        actor_kind=lesson.author_kind, actor_label=lesson.author_label, user=lesson.author_user,
        agent=lesson.author_agent, lab=place.lab or place.source_lab,
    )  # fmt: skip
    if status == Status.ACTIVE:
        index(lesson)
    return lesson


def index(lesson: Lesson) -> None:
    """Let look-ups find a lesson by the telling words of its error."""
    words = sorted({word[:MAX_TOKEN] for word in words_of(lesson.normalised)})[:MAX_TOKENS]
    LessonToken.objects.bulk_create(
        LessonToken(lesson=lesson, token=word, scope_key=lesson.scope_key, signature=lesson.signature) for word in words
    )


def unindex(lesson: Lesson) -> None:
    """Take a lesson out of look-ups, in the transaction that ends it."""
    LessonToken.objects.filter(lesson=lesson).delete()


def note(actor: Actor, verb: str, lesson: Lesson, *, before: str = "", reason: str = "") -> None:
    """Write the audit line of an act on a lesson: what and where, never its texts."""
    audit.record(
        actor=actor.ref, verb=verb, object_kind="lesson", object_id=lesson.public_id,
        lab_id=lesson.lab_id if lesson.scope == Scope.LAB else lesson.source_lab_id,
        before={"status": before} if before else None, reason=reason,
        after={"scope": lesson.scope_key, "status": lesson.status, "digest": lesson.content_digest},
    )  # fmt: skip


def tell(name: str, lesson: Lesson) -> None:
    """Announce what became of a lesson to those it concerns; its author's agent hears too."""
    topics = {
        Scope.PROJECT: f"user:{lesson.owner_id}",
        Scope.LAB: f"lab:{lesson.lab_id}",
        Scope.CLUSTER: "facility:memory",
    }
    heard = [topics[Scope(lesson.scope)]]
    if lesson.author_agent_id:
        heard.append(f"agent:{lesson.author_agent_id}")
    origin = lesson.derived_from
    payload = events.LessonNews(
        lesson=lesson.public_id, scope=lesson.scope, status=lesson.status,
        derived_from=origin.public_id if origin and lesson.scope == Scope.LAB else "",
    )  # fmt: skip
    live.announce([live.News(name, tuple(heard), dict(payload))])

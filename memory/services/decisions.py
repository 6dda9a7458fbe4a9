"""Widening a lesson's scope, and ending it. A wider scope is a new row, approved by those who answer for that scope."""

from django.db import IntegrityError, transaction

from memory import events, permissions
from memory.models import Lesson
from memory.models.choices import Scope, Status
from memory.services import rows
from memory.services.content import LIMITS, LessonContent, clean_field, clean_reason, content_digest, nameless
from memory.services.rows import Place
from portal.core.errors import Conflict, Invalid
from principals.actors import Actor
from principals.models import Cluster, Lab

_WHO = {Scope.LAB: "The PI or a manager of the lab decides.", Scope.CLUSTER: "Research-computing staff decide."}


def propose_lesson(*, actor: Actor, lesson: Lesson, lab: Lab | None = None, cluster: Cluster | None = None) -> Lesson:
    """Propose an active lesson for the next wider scope: a project's for its lab, a lab's for a cluster.

    The new row holds no names and no raw error text. Who may approve it approves it by proposing. Errors: `NotAllowed`,
    `Invalid` where no lab or cluster is named, `Conflict` for a lesson that is over or waits already.
    """
    place = _wider(actor, lesson, lab, cluster)
    if lesson.status != Status.ACTIVE:
        raise Conflict(f"{lesson.public_id} is not active.", code="lesson_not_active")
    with transaction.atomic():
        try:
            with transaction.atomic():
                proposal = rows.insert(place, Status.DRAFT, _derived(lesson, place))
        except IntegrityError as error:
            raise Conflict(
                "It is proposed already.", code="already_proposed", remedy=_WHO[Scope(place.scope)]
            ) from error
        rows.note(actor, "lesson.propose", proposal)
        if permissions.can(actor, "lesson.decide", proposal):
            return _put_in_force(actor, proposal, before=Status.DRAFT)
        rows.tell(events.LESSON_PROPOSED, proposal)
    return proposal


def propose_once(actor: Actor, lesson: Lesson, lab: Lab) -> Lesson:
    """Propose a project's lesson for its lab, or return the proposal or lesson that it became before."""
    kept = lesson.promotions.filter(scope=Scope.LAB, lab=lab, status__in=[Status.DRAFT, Status.ACTIVE]).first()
    return kept or propose_lesson(actor=actor, lesson=lesson, lab=lab)


def _wider(actor: Actor, lesson: Lesson, lab: Lab | None, cluster: Cluster | None) -> Place:
    if lesson.scope == Scope.PROJECT:
        permissions.require(actor, "lesson.propose_to_lab", lesson)
        home = lesson.lab or lab
        if home is None:
            raise Invalid("Name the lab it is for.", code="lab_missing", extra={"field": "lab"})
        if not actor.is_system and home.pk not in actor.member_lab_ids:
            raise Invalid("You are not of this lab.", code="not_a_member", extra={"field": "lab"})
        return Place(Scope.LAB, lab=home)
    permissions.require(
        actor, "lesson.propose_to_cluster", lesson, remedy="A PI or lab manager proposes the lab's lessons."
    )
    if cluster is None:
        raise Invalid("Name the cluster it is for.", code="cluster_missing", extra={"field": "cluster"})
    return Place(Scope.CLUSTER, cluster=cluster, source_lab=lesson.lab)


def _derived(lesson: Lesson, place: Place) -> dict[str, object]:
    content = LessonContent(
        error_text=lesson.error_text, cause=lesson.cause, fix=lesson.fix, check_words=lesson.check_words,
        conditions=rows.condition_texts(lesson.conditions),
    )  # fmt: skip
    columns = rows.text_columns(place, content)
    # The signature is of the text as it was met, so that the same error finds both rows alike.
    columns |= {
        "signature": lesson.signature,
        "parameters": lesson.parameters,
        "normaliser_version": lesson.normaliser_version,
    }
    columns["content_digest"] = _digest(lesson.signature, columns)
    return columns | {
        "source": lesson.source, "job_key": None, "derived_from": lesson, "lineage": lesson.lineage,
        "author_kind": lesson.author_kind, "author_label": lesson.author_label,
        "author_user": lesson.author_user, "author_agent": lesson.author_agent,
    }  # fmt: skip


def _digest(signature: str, columns: dict[str, object]) -> str:
    conditions = rows.condition_texts(columns["conditions"])  # type: ignore[arg-type]
    texts = {name: str(columns[name]) for name in LIMITS}
    return content_digest(signature, LessonContent(**texts, conditions=conditions))


def approve_lesson(
    *, actor: Actor, lesson: Lesson, cause: str | None = None, fix: str | None = None, check_words: str | None = None
) -> Lesson:
    """Put a proposed lesson in force, with the reviewer's wording where given.

    An earlier row of the same lesson in the same scope is superseded. Errors: `NotAllowed`, `Invalid`, `Conflict`
    where it does not wait any more or the scope knows the same.
    """
    permissions.require(actor, "lesson.decide", lesson, remedy=_WHO.get(Scope(lesson.scope), ""))
    before = lesson.status
    given = {"cause": cause, "fix": fix, "check_words": check_words}
    texts = {name: clean_field(name, text) for name, text in given.items() if text is not None}
    if texts:
        lab = lesson.lab or lesson.source_lab
        cleaned = nameless(lab, *texts.values(), keep_paths=lesson.scope == Scope.LAB)
        for name, text in zip(texts, cleaned, strict=True):
            setattr(lesson, name, text)
    with transaction.atomic():
        return _put_in_force(actor, lesson, before=before)


def _put_in_force(actor: Actor, lesson: Lesson, *, before: str) -> Lesson:
    older = Lesson.objects.active().filter(scope_key=lesson.scope_key, lineage=lesson.lineage).exclude(pk=lesson.pk)
    for row in older:
        if row.move(old=Status.ACTIVE, new=Status.SUPERSEDED, reason=f"Replaced by {lesson.public_id}.", by=actor.user):
            rows.unindex(row)
    lesson.content_digest = _digest(lesson.signature, {name: getattr(lesson, name) for name in (*LIMITS, "conditions")})
    texts = {name: getattr(lesson, name) for name in ("cause", "fix", "check_words", "content_digest")}
    try:
        with transaction.atomic():
            moved = lesson.move(old=Status.DRAFT, new=Status.ACTIVE, by=actor.user)
            Lesson.objects.filter(pk=lesson.pk).update(**texts)
    except IntegrityError as error:
        raise Conflict("This scope knows the same lesson.", code="lesson_known", remedy="Reject this one.") from error
    if not moved:
        raise _decided(lesson)
    rows.index(lesson)
    rows.note(actor, "lesson.approve", lesson, before=before)
    rows.tell(events.LESSON_CHANGED, lesson)
    return lesson


def reject_lesson(*, actor: Actor, lesson: Lesson, reason: str) -> Lesson:
    """Turn a proposed lesson down; its origin stays as it is. Errors: `NotAllowed`, `Invalid`, `Conflict`."""
    permissions.require(actor, "lesson.decide", lesson, remedy=_WHO.get(Scope(lesson.scope), ""))
    return _end(actor, lesson, "lesson.reject", clean_reason(reason), old=Status.DRAFT)


def withdraw_lesson(*, actor: Actor, lesson: Lesson, reason: str) -> Lesson:
    """End a lesson in force: no look-up finds it any more. Errors: `NotAllowed`, `Invalid`, `Conflict`.

    A project's by its owner, a lab's by its PI or managers, a cluster's by staff or by the lab it came from.
    """
    permissions.require(actor, "lesson.withdraw", lesson)
    return _end(actor, lesson, "lesson.withdraw", clean_reason(reason), old=Status.ACTIVE)


def _end(actor: Actor, lesson: Lesson, verb: str, reason: str, *, old: str) -> Lesson:
    with transaction.atomic():
        if not lesson.move(old=old, new=Status.INVALID, reason=reason, by=actor.user):
            raise _decided(lesson)
        rows.unindex(lesson)
        rows.note(actor, verb, lesson, before=old, reason=reason)
        rows.tell(events.LESSON_CHANGED, lesson)
    return lesson


def _decided(lesson: Lesson) -> Conflict:
    now = Lesson.objects.get(pk=lesson.pk)
    return Conflict(
        f"{lesson.public_id} is {now.get_status_display().lower()} by now.", code="lesson_decided",
        remedy="Reload the page.",
    )  # fmt: skip

"""Recording a lesson. What its author may not decide alone waits as a proposal beside it."""

from dataclasses import dataclass

from django.db import IntegrityError, transaction

from memory import events, permissions
from memory.models import Lesson
from memory.models.choices import Scope, Status
from memory.services import decisions, evidence, rows
from memory.services.content import LessonContent, clean_content
from memory.services.rows import Place
from portal.core import throttle
from portal.core.errors import Invalid, NotAllowed
from principals.actors import Actor
from principals.models import Cluster, Lab, User

RECORDED_PER_HOUR = 60


@dataclass(frozen=True, slots=True)
class Recorded:
    """The lesson, whether it is new, and the proposal that waits for the lab's word, if one was asked for."""

    lesson: Lesson
    created: bool
    proposal: Lesson | None = None


def record_lesson(
    *,
    actor: Actor,
    content: LessonContent,
    scope: str = Scope.PROJECT,
    lab: Lab | None = None,
    cluster: Cluster | None = None,
    owner: User | None = None,
) -> Recorded:
    """Record a lesson in a scope. The same lesson again is the one that is known, and a word for it.

    A lab's PI and managers record for the lab, staff for a cluster; from others a lesson for the lab is kept in their
    project and proposed. `owner` is for the system alone. Errors: `Invalid` naming the field, `NotAllowed`, `TooMany`.
    """
    permissions.require(actor, "lesson.record")
    if scope not in Scope.values:
        raise Invalid(f"There is no scope {scope[:20]}.", code="scope_unknown", extra={"field": "scope"})
    if not actor.is_system:
        throttle.check("lessons", rows.voice_of(actor), limit=RECORDED_PER_HOUR, window_s=3600)
    cleaned = clean_content(actor, content)
    place = _place(actor, scope, lab, cluster, owner)
    waits = scope == Scope.LAB and place.scope == Scope.PROJECT
    with transaction.atomic():
        lesson, created = _insert_or_find(actor, place, cleaned)
        proposal = decisions.propose_once(actor, lesson, place.lab) if waits and place.lab else None
    return Recorded(lesson, created, proposal)


def _place(actor: Actor, scope: str, lab: Lab | None, cluster: Cluster | None, owner: User | None) -> Place:
    if scope == Scope.CLUSTER:
        if cluster is None:
            raise Invalid("A lesson for a cluster names it.", code="cluster_missing", extra={"field": "cluster"})
        permissions.require(
            actor, "lesson.record_in_cluster",
            remedy="Record it for your project or lab; the PI proposes it for the cluster, and staff approve.",
        )  # fmt: skip
        return Place(Scope.CLUSTER, cluster=cluster)
    home = actor.agent.lab if actor.agent is not None else lab
    if scope == Scope.LAB:
        if home is None:
            raise Invalid("A lesson for a lab names it.", code="lab_missing", extra={"field": "lab"})
        if permissions.can(actor, "lesson.record_in_lab", home):
            return Place(Scope.LAB, lab=home)
    return Place(Scope.PROJECT, owner=_owner(actor, owner), lab=_own_lab(actor, home))


def _owner(actor: Actor, owner: User | None) -> User:
    """Return whose project it is: the person's own, of an agent its owner's."""
    found = actor.user or (owner if actor.is_system else None)
    if found is None:
        raise Invalid("A lesson of a project names its owner.", code="owner_missing")
    return found


def _own_lab(actor: Actor, lab: Lab | None) -> Lab | None:
    if lab is None or actor.is_system or lab.pk in actor.member_lab_ids:
        return lab
    raise NotAllowed("You are not of this lab.", code="not_a_member", remedy="Name a lab you belong to.")


def _insert_or_find(actor: Actor, place: Place, content: LessonContent) -> tuple[Lesson, bool]:
    columns = rows.text_columns(place, content) | rows.author_columns(actor)
    columns |= {"source": content.source, "job_key": content.job_key or None}
    known = Lesson.objects.active().filter(scope_key=place.key, content_digest=columns["content_digest"])
    lesson = known.first()
    if lesson is None:
        try:
            with transaction.atomic():
                lesson = rows.insert(place, Status.ACTIVE, columns)
        except IntegrityError:  # somebody recorded the same between the look and the write
            lesson = known.get()
        else:
            rows.note(actor, "lesson.record", lesson)
            rows.tell(events.LESSON_RECORDED, lesson)
            return lesson, True
    evidence.add_voice(actor, lesson, kind=content.source, job_key=content.job_key or None)
    return lesson, False

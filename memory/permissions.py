"""Who may do what in `memory`. Reading is `Lesson.objects.visible_to`; each rule here asks for it first."""

from typing import Any

from memory.models import Lesson
from memory.models.choices import Scope, Status
from principals import permissions as principal_permissions
from principals.actors import Actor
from principals.models import Lab


def _staff(actor: Actor, _: Any = None) -> bool:
    return principal_permissions.can(actor, "facility.run")


def _manages(actor: Actor, lab_id: int | None) -> bool:
    return actor.is_person and lab_id is not None and lab_id in actor.managed_lab_ids


def _records(actor: Actor, _: Any) -> bool:
    return actor.is_system or actor.user is not None


def _owns(actor: Actor, lesson: Lesson) -> bool:
    if lesson.scope != Scope.PROJECT or actor.user is None or lesson.owner_id != actor.user.pk:
        return False
    return actor.agent is None or lesson.lab_id in (None, actor.agent.lab_id)


def _proposes_to_lab(actor: Actor, lesson: Lesson) -> bool:
    return _owns(actor, lesson) or (actor.is_system and lesson.scope == Scope.PROJECT)


def _proposes_to_cluster(actor: Actor, lesson: Lesson) -> bool:
    return lesson.scope == Scope.LAB and (actor.is_system or _manages(actor, lesson.lab_id))


def _decides(actor: Actor, lesson: Lesson) -> bool:
    if lesson.scope == Scope.LAB:
        return _manages(actor, lesson.lab_id)
    return lesson.scope == Scope.CLUSTER and _staff(actor)


def _withdraws(actor: Actor, lesson: Lesson) -> bool:
    if lesson.scope == Scope.PROJECT:
        return actor.is_person and _owns(actor, lesson)
    return _decides(actor, lesson) or (lesson.scope == Scope.CLUSTER and _manages(actor, lesson.source_lab_id))


def _confirms(actor: Actor, lesson: Lesson) -> bool:
    if actor.user is None or lesson.status != Status.ACTIVE:
        return False
    return Lesson.objects.visible_to(actor).filter(pk=lesson.pk).exists()


def _sees_names(actor: Actor, lesson: Lesson) -> bool:
    """People of the lesson's own circle read who wrote it; an agent never does."""
    if not actor.is_person:
        return False
    return actor.sees_facility or _owns(actor, lesson) or lesson.lab_id in actor.member_lab_ids


def _records_in_lab(actor: Actor, lab: Lab) -> bool:
    return actor.is_system or _manages(actor, lab.pk)


RULES: principal_permissions.Rules = {
    "lesson.record": _records,
    "lesson.record_in_lab": _records_in_lab,
    "lesson.record_in_cluster": _staff,
    "lesson.propose_to_lab": _proposes_to_lab,
    "lesson.propose_to_cluster": _proposes_to_cluster,
    "lesson.decide": _decides,
    "lesson.withdraw": _withdraws,
    "lesson.confirm": _confirms,
    "lesson.see_names": _sees_names,
}
_book = principal_permissions.Rulebook(RULES)
can, require = _book.can, _book.require

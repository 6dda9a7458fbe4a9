"""Holds: placed and lifted here by whatever app has a reason to stop a principal."""

import contextlib
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Model, Q

from portal.core import audit, clock, live
from portal.core.errors import Conflict
from principals import events, permissions, selectors
from principals.actors import Actor
from principals.models import Agent, Hold, Lab, ServiceAccount, User
from principals.services.notices.telling import tell_of_hold

TOPICS_AN_EVENT = 200
_SUBJECTS: dict[str, type[Model]] = {
    Hold.Subject.USER: User,
    Hold.Subject.LAB: Lab,
    Hold.Subject.AGENT: Agent,
    Hold.Subject.SERVICE: ServiceAccount,
    Hold.Subject.OWNER: User,
}


def place_hold(
    *,
    actor: Actor,
    subject_kind: str,
    subject_id: int = 0,
    subject_name: str = "",
    kind: str,
    code: str,
    reason: str,
    remedy: str = "",
    until: datetime | None = None,
    placed_as: str = "",
) -> Hold:
    """Stop a principal until the hold is lifted or lapses. An equal one that lasts as long is returned, not doubled."""
    permissions.require(actor, "hold.place", (subject_kind, subject_id))
    with transaction.atomic():
        # The subject's row is the lock: two equal holds would need lifting twice. Where there is none (a harness, all),
        # who places it sees to that (`principals.services.kill_switches`).
        if model := _SUBJECTS.get(subject_kind):
            model._default_manager.select_for_update(no_key=True).filter(pk=subject_id).first()
        lasting = Q(until=None) if until is None else Q(until=None) | Q(until__gte=until)
        equal = Hold.objects.in_force().on(subject_kind, subject_id, subject_name)
        equal = equal.filter(lasting, kind=kind, code=code, placed_as=placed_as)
        standing = equal.first()
        if standing is not None:
            return standing
        hold = Hold.objects.create(
            subject_kind=subject_kind, subject_id=subject_id, subject_name=subject_name, kind=kind, code=code,
            reason=reason, remedy=remedy, until=until, placed_by=actor.ref.label,
            placed_as=placed_as,
        )  # fmt: skip
        _tell(actor, hold, verb="hold.place", name=events.HOLD_PLACED, reason=reason)
    return hold


def lift_hold(*, actor: Actor, hold: Hold, reason: str) -> Hold:
    """Lift one hold. Errors: `Conflict` where it is lifted already."""
    permissions.require(actor, "hold.place", (hold.subject_kind, hold.subject_id))
    with transaction.atomic():
        now = clock.now()
        lifted = Hold.objects.filter(pk=hold.pk, lifted_at=None).update(lifted_at=now, lifted_by=actor.ref.label)
        if not lifted:
            raise Conflict("This hold is lifted already.", code="hold_lifted")
        hold.lifted_at, hold.lifted_by = now, actor.ref.label
        _tell(actor, hold, verb="hold.lift", name=events.HOLD_LIFTED, reason=reason)
    return hold


def lift_holds(*, actor: Actor, subject_kind: str, subject_id: int, kind: str, reason: str) -> int:
    """Lift every hold of one kind on a subject; return how many there were. One that somebody else lifts is lifted."""
    lifted = 0
    for hold in Hold.objects.in_force().on(subject_kind, subject_id).filter(kind=kind):
        with contextlib.suppress(Conflict):
            lift_hold(actor=actor, hold=hold, reason=reason)
            lifted += 1
    return lifted


def _tell(actor: Actor, hold: Hold, *, verb: str, name: str, reason: str) -> None:
    audit.record(
        actor=actor.ref, verb=verb, object_kind=hold.subject_kind, object_id=hold.subject_name or hold.subject_id,
        object_label=hold.code, lab_id=_lab_of(hold), reason=reason,
        after={"code": hold.code, "kind": hold.kind, "until": hold.until},
    )  # fmt: skip
    payload = events.HoldChanged(
        subject_kind=hold.subject_kind, subject_id=hold.subject_id, code=hold.code, reason=hold.reason,
        remedy=hold.remedy,
    )  # fmt: skip
    live.announce(live.News(name=name, topics=topics, payload=dict(payload)) for topics in _topics(hold))
    in_force = name == events.HOLD_PLACED
    tell_of_hold(hold, placed=in_force, reason=reason)
    transaction.on_commit(partial(events.hold_changed.send_robust, Hold, hold_id=hold.pk, in_force=in_force))


def _topics(hold: Hold) -> list[tuple[str, ...]]:
    """Return who hears of a hold, an event each: staff and its subject; of many agents at once each, and its people."""
    own = f"{hold.subject_kind}:{hold.subject_id}"
    if hold.subject_kind in (Hold.Subject.AGENT, Hold.Subject.SERVICE):
        return [(own, "facility:principals")]
    if hold.subject_kind == Hold.Subject.USER:
        stopped = Agent.objects.filter(owner=hold.subject_id).exclude(status=Agent.Status.RETIRED)
        heard = {own} | {f"agent:{pk}" for pk in stopped.values_list("pk", flat=True)}
    else:
        heard = {own} if hold.subject_kind == Hold.Subject.LAB else set[str]()
        for pk, owner_id, lab_id in selectors.agents_at(hold.place).values_list("pk", "owner_id", "lab_id"):
            heard |= {f"agent:{pk}", f"user:{owner_id}", f"lab:{lab_id}"}
    listed = ["facility:principals", *sorted(heard)]
    return [tuple(listed[at : at + TOPICS_AN_EVENT]) for at in range(0, len(listed), TOPICS_AN_EVENT)]


def _lab_of(hold: Hold) -> int | None:
    if hold.subject_kind == Hold.Subject.LAB:
        return hold.subject_id
    if hold.subject_kind == Hold.Subject.AGENT:
        return Agent.objects.filter(pk=hold.subject_id).values_list("lab_id", flat=True).first()
    return None

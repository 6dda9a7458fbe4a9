"""Kill switches: many agents stopped at once, and given back as they were.

A switch does what it does by one hold on the agent, the person's agents, the lab, the harness or all: an agent that is
registered meanwhile is stopped as well, and no other hold is touched when it ends. Jobs in Slurm go on.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction

from portal.core import audit, clock, live
from portal.core.errors import Conflict, Invalid, NotAllowed, NotFound
from portal.core.models import Counter
from principals import permissions, selectors
from principals.actors import Actor
from principals.engine.harnesses import harness_name, known_harnesses
from principals.models import Agent, Hold, KillSwitch, Lab, Place, User
from principals.services.holds import lift_hold, place_hold

CODE: Final = "kill_switch"
LONGEST: Final = timedelta(days=30)
_LOCK: Final = "kill_switch"  # the row that whoever decides holds: two equal switches would need ending twice


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be stopped, and how people call it."""

    place: Place
    label: str


def find_target(kind: str, which: str = "") -> Target:
    """Return what a kind and a name stand for: an agent's name, a login name, a lab's, a harness's slug.

    Errors: `NotFound`, with the field `which`.
    """
    found = _FINDERS[kind](which.strip()) if kind in _FINDERS else None
    if found is None:
        raise NotFound(
            "There is nothing of that name to stop.", code="target_unknown", extra={"field": "which"},
            remedy="Give an agent’s name, a login name, a lab’s name or a harness, as the kind says.",
        )  # fmt: skip
    return found


def _agent(name: str) -> Target | None:
    agent = Agent.objects.filter(name=name).exclude(status=Agent.Status.RETIRED).first()
    return Target(Place("agent", agent.pk), f"Agent {agent.name}") if agent else None


def _owner(name: str) -> Target | None:
    user = User.objects.filter(username=name).first()
    return Target(Place("owner", user.pk), f"Agents of {user.username}") if user else None


def _lab(name: str) -> Target | None:
    lab = Lab.objects.filter(name=name).first()
    return Target(Place("lab", lab.pk), f"Agents of the lab {lab.title}") if lab else None


def _harness(slug: str) -> Target | None:
    return Target(Place("harness", name=slug), f"Agents on {harness_name(slug)}") if slug in known_harnesses() else None


def _all(_: str) -> Target:
    return Target(Place("all"), "Every agent")


_FINDERS: Final[dict[str, Callable[[str], Target | None]]] = {
    "agent": _agent, "owner": _owner, "lab": _lab, "harness": _harness, "all": _all,
}  # fmt: skip


def needs_second(target: Target) -> bool:
    """Say whether stopping so many agents takes two people."""
    limit: int = settings.KILL_SWITCH_ALONE
    return selectors.agents_at(target.place).count() > limit


def pull(*, actor: Actor, target: Target, reason: str, until: datetime, is_drill: bool = False) -> KillSwitch:
    """Stop agents until somebody ends it or its time comes; or ask a second person for it, where they are many.

    A drill counts how far it would reach and stops nobody. Errors: `NotAllowed`; `Invalid` without a reason or with an
    end that is none; `Conflict` where one of the same target lasts as long, or waits.
    """
    permissions.require(actor, "kill_switch.pull")
    user = permissions.person_of(actor)
    if not reason.strip():
        raise Invalid("A reason is needed.", code="reason_missing", extra={"field": "reason"})
    now = clock.now()
    if not now < until <= now + LONGEST:
        raise Invalid("Choose an end within 30 days from now.", code="until_out_of_range", extra={"field": "days"})
    with transaction.atomic():
        _lock()
        if not is_drill:
            _refuse_double(target, until)
        switch = KillSwitch(
            target_kind=target.place.kind, target_id=target.place.id, target_name=target.place.name,
            target_label=target.label, reason=reason.strip(), until=until, asked_by=user,
            reach=asdict(selectors.reach_of(target.place)),
        )  # fmt: skip
        if is_drill:
            switch.state, switch.decided_by, switch.decided_at = KillSwitch.State.DRILL, user, now
            switch.save()
            _tell(actor, switch, "kill_switch.drill")
        elif needs_second(target):
            switch.state = KillSwitch.State.ASKED
            switch.save()
            _tell(actor, switch, "kill_switch.ask")
        else:
            _stop(actor, switch, user)
    return switch


def second(*, actor: Actor, switch: KillSwitch) -> KillSwitch:
    """Agree as the second person. Errors: `NotAllowed` to who asked; `Conflict` where it waits no more."""
    permissions.require(actor, "kill_switch.pull")
    user = permissions.person_of(actor)
    with transaction.atomic():
        _lock()
        waiting = KillSwitch.objects.waiting().filter(pk=switch.pk).first()
        if waiting is None or waiting.until <= clock.now():
            raise Conflict("This request does not wait any more.", code="kill_switch_decided", remedy="Ask anew.")
        if waiting.asked_by_id == user.pk:
            raise NotAllowed(
                "You asked for this; a second person agrees to it.", code="second_person_needed",
                remedy="Ask somebody else of staff or InfoSec.",
            )  # fmt: skip
        waiting.reach = asdict(selectors.reach_of(place_of(waiting)))
        _stop(actor, waiting, user)
    return waiting


def withdraw(*, actor: Actor, switch: KillSwitch, reason: str) -> KillSwitch:
    """Take back what waits for a second person: by who asked, or as the second person's no."""
    permissions.require(actor, "kill_switch.pull")
    return _close(actor, switch, KillSwitch.State.ASKED, KillSwitch.State.WITHDRAWN, reason, "kill_switch.withdraw")


def end(*, actor: Actor, switch: KillSwitch, reason: str) -> KillSwitch:
    """Give agents back as they were: this switch's hold is lifted, and no other. Errors: `Conflict` if it is ended."""
    permissions.require(actor, "kill_switch.pull")
    with transaction.atomic():
        ended = _close(actor, switch, KillSwitch.State.IN_FORCE, KillSwitch.State.ENDED, reason, "kill_switch.end")
        if ended.hold is not None:
            lift_hold(actor=actor, hold=ended.hold, reason=reason)
    return ended


def place_of(switch: KillSwitch) -> Place:
    """Return what a switch is on."""
    return Place(switch.target_kind, switch.target_id, switch.target_name)


def _close(actor: Actor, switch: KillSwitch, old: str, new: str, reason: str, verb: str) -> KillSwitch:
    user = permissions.person_of(actor)
    if not reason.strip():
        raise Invalid("A reason is needed.", code="reason_missing", extra={"field": "reason"})
    with transaction.atomic():
        _lock()  # who agrees at the same instant has read that it waits
        moved = KillSwitch.objects.filter(pk=switch.pk, state=old).update(
            state=new, ended_by=user, ended_at=clock.now(), end_reason=reason.strip()
        )
        if not moved:
            raise Conflict("Somebody decided this already.", code="kill_switch_decided", remedy="Load the page again.")
        switch = KillSwitch.objects.select_related("hold").get(pk=switch.pk)
        _tell(actor, switch, verb, reason=reason)
    return switch


def _lock() -> None:
    Counter.objects.get_or_create(name=_LOCK)
    Counter.objects.select_for_update().get(name=_LOCK)


def _refuse_double(target: Target, until: datetime) -> None:
    same = KillSwitch.objects.filter(
        target_kind=target.place.kind, target_id=target.place.id, target_name=target.place.name
    )
    if same.in_force().filter(until__gte=until).exists():
        raise Conflict(f"{target.label} are stopped already, for as long.", code="kill_switch_in_force",
                       remedy="End that one, or choose a later end.")  # fmt: skip
    if same.waiting().exists():
        raise Conflict(f"A request to stop the same waits: {target.label}.", code="kill_switch_waits",
                       remedy="A second person agrees to it, or it is withdrawn.")  # fmt: skip


def _stop(actor: Actor, switch: KillSwitch, user: User) -> None:
    switch.hold = place_hold(
        actor=actor, subject_kind=switch.target_kind, subject_id=switch.target_id, subject_name=switch.target_name,
        kind=Hold.Kind.KILL_SWITCH, code=CODE, reason=f"{switch.target_label}: stopped. {switch.reason}"[:500],
        remedy="Stop, and tell your person. Staff or InfoSec end this; jobs in Slurm go on.", until=switch.until,
    )  # fmt: skip
    switch.state, switch.decided_by, switch.decided_at = KillSwitch.State.IN_FORCE, user, clock.now()
    switch.save()
    _tell(actor, switch, "kill_switch.pull")


def _tell(actor: Actor, switch: KillSwitch, verb: str, *, reason: str = "") -> None:
    """Record it, and tell staff; agents and their people hear of the hold itself."""
    audit.record(
        actor=actor.ref, verb=verb, object_kind="kill_switch", object_id=switch.pk, object_label=switch.target_label,
        lab_id=switch.target_id if switch.target_kind == Hold.Subject.LAB else None, reason=reason or switch.reason,
        after={"state": switch.state, "until": switch.until, "reach": switch.reach},
    )  # fmt: skip
    payload = {"id": switch.pk, "target": switch.target_label, "state": str(switch.state), "by": actor.ref.label}
    live.announce([live.News(name="kill_switch.changed", topics=("facility:principals",), payload=payload)])

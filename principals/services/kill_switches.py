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
from django.db.models import Q, QuerySet

from portal.core import audit, clock, live
from portal.core.errors import Conflict, Invalid, NotAllowed, NotFound
from portal.core.models import Counter
from principals import permissions, selectors
from principals.actors import SYSTEM_ACTOR, Actor
from principals.engine.harnesses import harness_name, known_harnesses
from principals.models import Agent, Hold, KillSwitch, Lab, Place, User
from principals.services.holds import lift_hold, place_hold

Standing = Hold.Standing
CODE: Final = "kill_switch"
LONGEST: Final = timedelta(days=30)
COUNTED_FOR: Final = timedelta(days=1)  # so long what one person stopped counts together
CODES: Final = {Standing.OWNER.value: "stopped_by_owner", Standing.LAB.value: "stopped_by_lab"}
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


def stopped_alone(user: User) -> list[Place]:
    """Return where one person stopped agents alone within a day, of what still stops them: they count together.

    Labs that they stopped as a manager count as well: staff make themselves one. Their own agents do not.
    """
    recent = KillSwitch.objects.in_force().filter(
        asked_by=user, decided_by=user, decided_at__gt=clock.now() - COUNTED_FOR
    )
    return [place_of(switch) for switch in recent.exclude(hold__placed_as=Standing.OWNER)]


def count_alone(target: Target, user: User) -> int:
    """Count the agents that one person would have stopped alone, with this target."""
    return selectors.agents_at_any([target.place, *stopped_alone(user)]).count()


def needs_second(target: Target, user: User) -> bool:
    """Say whether stopping so many agents, with what the person stopped alone within a day, takes two people."""
    limit: int = settings.KILL_SWITCH_ALONE
    return count_alone(target, user) > limit


def pull(*, actor: Actor, target: Target, reason: str, until: datetime, is_drill: bool = False) -> KillSwitch:
    """Stop agents until somebody ends it or its time comes; or ask a second person for it, where they are many.

    A drill counts how far it would reach and stops nobody. Errors: `NotAllowed`; `Invalid` without a reason or with an
    end that is none; `Conflict` where one of the same target lasts as long, or waits.
    """
    permissions.require(actor, "kill_switch.pull")
    user = permissions.person_of(actor)
    _check(reason, until)
    now = clock.now()
    with transaction.atomic():
        _lock()
        if not is_drill:
            _refuse_double(target, until, Standing.FACILITY)
        switch = _asked(target, reason, until, user)
        if is_drill:
            switch.state, switch.decided_by, switch.decided_at = KillSwitch.State.DRILL, user, now
            switch.save()
            _tell(actor, switch, "kill_switch.drill")
        elif needs_second(target, user):
            switch.state = KillSwitch.State.ASKED
            switch.save()
            _tell(actor, switch, "kill_switch.ask")
        else:
            _stop(actor, switch, user)
    return switch


def stop_own(*, actor: Actor, lab: Lab | None = None, reason: str, until: datetime) -> KillSwitch:
    """Stop all agents of a lab that the person manages, or without a lab their own. Nobody else need agree.

    Errors: `NotAllowed`; `Invalid` without a reason or an end; `Conflict` where it is done already, for as long, and to
    staff or InfoSec where as the facility they would need a second person for the lab.
    """
    if lab is not None:
        permissions.require(actor, "agents.stop_of_lab", lab, remedy="Ask the lab’s PI or a manager.")
    else:
        permissions.require(actor, "agents.stop_own")
    user = permissions.person_of(actor)
    _check(reason, until)
    standing = Standing.OWNER if lab is None else Standing.LAB
    target = find_target("owner", user.username) if lab is None else find_target("lab", lab.name)
    with transaction.atomic():
        _lock()
        _refuse_double(target, until, standing)
        if lab is not None and permissions.can(actor, "kill_switch.pull") and needs_second(target, user):
            raise Conflict(
                f"{target.label}: with what you stopped alone within a day, these are too many for one person of staff "
                "or InfoSec.", code="second_person_needed",
                remedy="Pull the kill switch for the lab, where a second person agrees; or ask the lab’s PI.",
            )  # fmt: skip
        switch = _asked(target, reason, until, user)
        _stop(actor, switch, user, standing)
    return switch


def own_in_force(*, actor: Actor, lab: Lab) -> QuerySet[KillSwitch]:
    """Return the stops that a person may give back on a lab's page: the lab's where they manage it, and their own."""
    user = permissions.person_of(actor)
    mine = Q(hold__placed_as=Standing.OWNER, target_kind=Hold.Subject.OWNER, target_id=user.pk)
    if permissions.can(actor, "agents.stop_of_lab", lab):
        mine |= Q(hold__placed_as=Standing.LAB, target_kind=Hold.Subject.LAB, target_id=lab.pk)
    return KillSwitch.objects.in_force().filter(mine).select_related("asked_by", "hold")


def give_back_own(*, actor: Actor, lab: Lab, switch: KillSwitch, reason: str) -> KillSwitch:
    """Give back what the lab or the owner stopped themselves: never what staff stopped. Errors: `NotFound`."""
    if not own_in_force(actor=actor, lab=lab).filter(pk=switch.pk).exists():
        raise NotFound("There is no such stop of yours.", code="kill_switch_unknown",
                       remedy="What staff or InfoSec stopped, they give back.")  # fmt: skip
    return _end(actor, switch, reason, lifted_by=SYSTEM_ACTOR)


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
        asker = waiting.asked_by
        if not (asker.is_active and permissions.can(permissions.actor_for_user(asker), "kill_switch.pull")):
            raise Conflict(
                "Whoever asked for this may not ask for it any more.", code="kill_switch_asker_left",
                remedy="Withdraw it, and ask anew.",
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
    return _end(actor, switch, reason, lifted_by=actor)


def place_of(switch: KillSwitch) -> Place:
    """Return what a switch is on."""
    return Place(switch.target_kind, switch.target_id, switch.target_name)


def _check(reason: str, until: datetime) -> None:
    if not reason.strip():
        raise Invalid("A reason is needed.", code="reason_missing", extra={"field": "reason"})
    now = clock.now()
    if not now < until <= now + LONGEST:
        raise Invalid("Choose an end within 30 days from now.", code="until_out_of_range", extra={"field": "days"})


def _asked(target: Target, reason: str, until: datetime, user: User) -> KillSwitch:
    return KillSwitch(
        target_kind=target.place.kind, target_id=target.place.id, target_name=target.place.name,
        target_label=target.label, reason=reason.strip(), until=until, asked_by=user,
        reach=asdict(selectors.reach_of(target.place)),
    )  # fmt: skip


def _end(actor: Actor, switch: KillSwitch, reason: str, *, lifted_by: Actor) -> KillSwitch:
    with transaction.atomic():
        ended = _close(actor, switch, KillSwitch.State.IN_FORCE, KillSwitch.State.ENDED, reason, "kill_switch.end")
        if ended.hold is not None:
            lift_hold(actor=lifted_by, hold=ended.hold, reason=reason)
    return ended


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


def _refuse_double(target: Target, until: datetime, standing: str) -> None:
    """Refuse what whoever stands as high did already: what a lab stopped itself, staff may stop as well."""
    same = KillSwitch.objects.filter(
        target_kind=target.place.kind, target_id=target.place.id, target_name=target.place.name
    )
    if same.in_force().filter(until__gte=until, hold__placed_as=standing).exists():
        raise Conflict(f"{target.label} are stopped already, for as long.", code="kill_switch_in_force",
                       remedy="End that one, or choose a later end.")  # fmt: skip
    if standing == Standing.FACILITY and same.waiting().exists():
        raise Conflict(f"A request to stop the same waits: {target.label}.", code="kill_switch_waits",
                       remedy="A second person agrees to it, or it is withdrawn.")  # fmt: skip


def _stop(actor: Actor, switch: KillSwitch, user: User, standing: str = Standing.FACILITY) -> None:
    own = standing != Standing.FACILITY  # the portal places it for them: `hold.place` is not theirs
    switch.hold = place_hold(
        actor=SYSTEM_ACTOR if own else actor, subject_kind=switch.target_kind, subject_id=switch.target_id,
        subject_name=switch.target_name, kind=Hold.Kind.KILL_SWITCH, code=CODES.get(standing, CODE),
        reason=f"{switch.target_label}: stopped. {switch.reason}"[:500], placed_as=standing, until=switch.until,
        remedy=f"Stop, and tell your person. {_ENDED_BY[standing]} end this; jobs in Slurm go on.",
    )  # fmt: skip
    switch.state, switch.decided_by, switch.decided_at = KillSwitch.State.IN_FORCE, user, clock.now()
    switch.save()
    _tell(actor, switch, "kill_switch.pull")


_ENDED_BY: Final = {
    Standing.OWNER.value: "Your owner or staff", Standing.LAB.value: "The lab’s PI, its managers or staff",
    Standing.FACILITY.value: "Staff or InfoSec",
}  # fmt: skip


def _tell(actor: Actor, switch: KillSwitch, verb: str, *, reason: str = "") -> None:
    """Record it, and tell staff; agents and their people hear of the hold itself."""
    audit.record(
        actor=actor.ref, verb=verb, object_kind="kill_switch", object_id=switch.pk, object_label=switch.target_label,
        lab_id=switch.target_id if switch.target_kind == Hold.Subject.LAB else None, reason=reason or switch.reason,
        after={"state": switch.state, "until": switch.until, "reach": switch.reach},
    )  # fmt: skip
    payload = {"id": switch.pk, "target": switch.target_label, "state": str(switch.state), "by": actor.ref.label}
    live.announce([live.News(name="kill_switch.changed", topics=("facility:principals",), payload=payload)])

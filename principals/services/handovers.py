"""An agent passes from who answers for it to somebody else of its lab: both agree, or staff decide."""

from django.db import IntegrityError, transaction

from portal.core import audit, clock, live
from portal.core.errors import Conflict, Invalid, NotAllowed
from principals import events, permissions, selectors
from principals.actors import Actor
from principals.models import Agent, AgentHandover, AgentToken, LabMembership, User
from principals.services.agents import hold_until_accepted
from principals.services.notices.telling import tell_of_asked_handover, tell_of_settled_handover

State = AgentHandover.State


def ask_handover(*, actor: Actor, agent: Agent, taker: User) -> AgentHandover:
    """Ask that somebody else of its lab answers for an agent from now on.

    It passes at once where everybody who must agree has: staff decide alone; for an owner who left, its PI or a manager
    agrees. Errors: `NotAllowed`, `Invalid` for a taker who cannot have it, `Conflict` while another one is open.
    """
    permissions.require(actor, "agent.hand_over", agent)
    _require_standing(agent)
    _require_able(agent, taker)
    with transaction.atomic():
        try:
            with transaction.atomic():
                asked = AgentHandover.objects.create(
                    agent=agent, giver=agent.owner, taker=taker, asked_by=permissions.person_of(actor)
                )
        except IntegrityError as error:
            raise Conflict(
                f"{agent.name} is being handed over already.", code="handover_open",
                remedy="Wait for it to be settled, or withdraw it on its page.",
            ) from error  # fmt: skip
        _record(actor, asked, "agent.ask_hand_over")
        _agree(actor, asked)
        if asked.state == State.OPEN:
            tell_of_asked_handover(asked)
    return asked


def agree_handover(*, actor: Actor, handover: AgentHandover) -> AgentHandover:
    """Agree to a handover, for the side that one stands for. Errors: `NotAllowed`, `Conflict` once it is settled."""
    with transaction.atomic():
        _lock(handover)
        _require_standing(handover.agent)
        _require_able(handover.agent, handover.taker)
        if not _agree(actor, handover):
            raise NotAllowed(
                "Who gives it and who takes it agree to this.", code="not_a_side",
                remedy=f"Wait for {handover.giver.username} and {handover.taker.username}, or ask staff.",
            )  # fmt: skip
    return handover


def close_handover(*, actor: Actor, handover: AgentHandover) -> AgentHandover:
    """Decline a handover, or withdraw it; the agent stays where it is."""
    sides = {handover.giver_id, handover.taker_id, handover.asked_by_id}
    person = permissions.person_of(actor)
    if person.pk not in sides and not permissions.can(actor, "agent.hand_over", handover.agent):
        raise NotAllowed("Only the two sides, its PI and staff end this.", code="not_a_side")
    with transaction.atomic():
        _lock(handover)
        handover.state, handover.settled = State.CLOSED, clock.now()
        handover.save(update_fields=["state", "settled"])
        _record(actor, handover, "agent.close_hand_over")
        tell_of_settled_handover(handover)
    return handover


def _lock(handover: AgentHandover) -> None:
    row = AgentHandover.objects.select_for_update(no_key=True).get(pk=handover.pk)
    if row.state != State.OPEN:
        raise Conflict("This handover is settled already.", code="handover_settled")
    handover.giver_agreed, handover.taker_agreed = row.giver_agreed, row.taker_agreed


def _require_standing(agent: Agent) -> None:
    if agent.status == Agent.Status.RETIRED:
        raise Conflict(f"{agent.name} is retired.", code="agent_retired")


def _require_able(agent: Agent, taker: User) -> None:
    """Refuse somebody who could not do what the agent was declared to do."""
    if taker.pk == agent.owner_id:
        raise Invalid(f"{taker.username} answers for it already.", code="owner_already", extra={"field": "taker"})
    if not taker.is_active or not LabMembership.objects.filter(lab=agent.lab_id, user=taker).exists():
        raise Invalid("Its owner must belong to the lab.", code="owner_outside_lab", extra={"field": "taker"})
    if lacking := sorted(set(agent.accounts) - selectors.accounts_of(taker, agent.lab).keys()):
        raise Invalid(
            f"{taker.username} may not charge {', '.join(lacking)}.", code="account_not_associated",
            remedy="Have Slurm’s association made first, or register another agent.", extra={"field": "taker"},
        )  # fmt: skip


def _agree(actor: Actor, handover: AgentHandover) -> bool:
    """Note the yes of whoever acts, for each side that they stand for; pass the agent once both are there."""
    agent, person = handover.agent, permissions.person_of(actor)
    decides = permissions.can(actor, "agent.approve_for_facility", agent)
    stands_in = selectors.owner_left(agent) and permissions.can(actor, "agent.approve_for_lab", agent)
    gives = decides or person.pk == handover.giver_id or stands_in
    takes = decides or person.pk == handover.taker_id
    if not (gives or takes):
        return False
    handover.giver_agreed |= gives
    handover.taker_agreed |= takes
    handover.save(update_fields=["giver_agreed", "taker_agreed"])
    if handover.giver_agreed and handover.taker_agreed:
        _pass_on(actor, handover)
    return True


def _pass_on(actor: Actor, handover: AgentHandover) -> None:
    """Make the taker its owner: its tokens end, and it is held until the AUP is accepted for it anew."""
    agent, now = handover.agent, clock.now()
    if not Agent.objects.filter(pk=agent.pk, owner=handover.giver).update(owner=handover.taker):
        raise Conflict(f"{agent.name} has another owner meanwhile.", code="owner_changed")
    agent.owner = handover.taker
    handover.state, handover.settled = State.DONE, now
    handover.save(update_fields=["state", "settled"])
    tokens = AgentToken.objects.filter(agent=agent, revoked_at=None)
    keys = sorted(tokens.values_list("key", flat=True))
    tokens.update(revoked_at=now, revoked_by=actor.ref.label)
    hold_until_accepted(
        agent, f"{agent.owner.username} answers for {agent.name} now: the acceptable-use policy waits for a new yes."
    )
    _record(actor, handover, "agent.hand_over", tokens_revoked=keys)
    topics = (f"agent:{agent.pk}", f"lab:{agent.lab_id}", "facility:principals")
    changed = events.AgentChanged(agent=agent.name, status=agent.status, reason="Somebody else answers for it.")
    revoked = [live.News(events.TOKEN_REVOKED, (topics[0], topics[2]), {"key": key}) for key in keys]
    live.announce([live.News(events.AGENT_CHANGED, topics, dict(changed)), *revoked])
    tell_of_settled_handover(handover)


def _record(actor: Actor, handover: AgentHandover, verb: str, **more: object) -> None:
    agent = handover.agent
    audit.record(
        actor=actor.ref, verb=verb, object_kind="agent", object_id=agent.pk, object_label=agent.name,
        lab_id=agent.lab_id, before={"owner": handover.giver.username},
        after={"owner": handover.taker.username} | more,
    )  # fmt: skip

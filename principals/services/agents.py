"""Registering, approving, suspending and retiring agents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction

from portal.core import audit, clock, live
from portal.core.errors import Conflict, Invalid, NotAllowed
from principals import events, permissions, selectors
from principals.actors import SYSTEM_ACTOR, Actor
from principals.engine import agents as agent_rules
from principals.engine.harnesses import harness_remedy, known_harnesses
from principals.engine.hours import Hours
from principals.models import Agent, AgentApproval, AgentToken, Hold, Lab, LabMembership, User
from principals.services.holds import lift_holds, place_hold
from principals.services.notices.telling import tell_of_approval, tell_of_waiting
from principals.services.sessions.recording import adopt_sessions

LONGEST_REGISTRATION = timedelta(days=366)
RENEWED_FOR = timedelta(days=180)
MOST_WAITING = 5  # of a person's agents, where an agent asks for one more
VERSION_LENGTH = 40
AUP_REQUIRED = "aup_required"
AGENT_SUSPENDED = "agent_suspended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a registration says of an agent."""

    name: str
    harness: str
    purpose: str
    expires: datetime
    autonomy: str = Agent.Autonomy.SUPERVISED
    hosts: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    harness_version: str = ""
    accounts: list[str] = field(default_factory=list)
    hours: Hours | None = None


def register_agent(*, actor: Actor, lab: Lab, owner: User, registration: Registration) -> Agent:
    """Register an agent for `owner` in `lab`. It is born held until the AUP is accepted for it.

    Registered by the PI or a lab manager it is approved for the lab at once, as it is by the lab's own rule where its
    risk is low; from the site's threshold on it also waits for staff. An agent asks for another one of its owner's,
    which always waits for people. Sessions that go on without an agent, and that it fits, are its from now on.
    Errors: `Invalid` with the field in `extra["field"]`, `NotAllowed` for people outside the lab.
    """
    permissions.require(actor, "agent.register", lab, remedy="Ask a PI or manager of this lab.")
    _validate(lab, owner, registration)
    manages = actor.is_person and permissions.can(actor, "lab.manage", lab)
    if actor.user != owner and not manages:
        raise NotAllowed("Only a PI or lab manager registers an agent for somebody else.", code="not_manager")
    if actor.agent:
        _require_patience(owner)
    with transaction.atomic():
        try:
            with transaction.atomic():
                agent = Agent.objects.create(
                    lab=lab, owner=owner, requested_by=owner if actor.agent else permissions.person_of(actor),
                    name=registration.name, harness=registration.harness, purpose=registration.purpose,
                    expires=registration.expires, autonomy=registration.autonomy, hosts=registration.hosts,
                    partitions=registration.partitions, harness_version=registration.harness_version,
                    accounts=registration.accounts, hours=registration.hours.as_json() if registration.hours else {},
                )  # fmt: skip
        except IntegrityError as error:
            raise _name_taken(registration.name) from error
        adopted = 0 if actor.agent else adopt_sessions(agent)  # no agent takes sessions for one that nobody let in
        after = {"name": agent.name, "owner": owner.username, "sessions_adopted": adopted}
        _record(actor, agent, "agent.register", after=after)
        hold_until_accepted(agent, f"The acceptable-use policy is not accepted for {agent.name}.")
        if manages and lab.pk in actor.managed_lab_ids:
            approve_agent(actor=actor, agent=agent)
        elif actor.is_person and selectors.rule_approves(agent):
            _approve_by_rule(agent)
        else:
            tell_of_waiting(agent)
    return agent


def hold_until_accepted(agent: Agent, reason: str) -> Hold:
    """Hold an agent until the acceptable-use policy is accepted for it."""
    return place_hold(
        actor=SYSTEM_ACTOR, subject_kind=Hold.Subject.AGENT, subject_id=agent.pk, kind=Hold.Kind.AUP,
        code=AUP_REQUIRED, reason=reason,
        remedy=f"Its owner, PI or lab manager reads and accepts it at {settings.BASE_URL}{agent.get_absolute_url()}",
    )  # fmt: skip


def _require_patience(owner: User) -> None:
    """Refuse an agent that asks for more than people have decided: each is mail to a PI, and takes a name."""
    if Agent.objects.filter(owner=owner, status=Agent.Status.REQUESTED).count() >= MOST_WAITING:
        raise Conflict(
            f"{MOST_WAITING} agents of {owner.username} wait for people already.", code="too_many_waiting",
            remedy="Tell your person: they are approved or retired on My lab.",
        )  # fmt: skip


def _approve_by_rule(agent: Agent) -> None:
    """Let an agent in by its lab's own rule, in the name of the PI who switched the rule on."""
    by = agent.lab.low_risk_rule_by
    if by is None:
        return
    AgentApproval.objects.create(agent=agent, kind=AgentApproval.Kind.LAB, by=by, by_rule=True)
    after = {"approval": AgentApproval.Kind.LAB, "by_rule_of": by.username, "score": selectors.risk_of(agent).score}
    _record(SYSTEM_ACTOR, agent, "agent.approve", after=after, reason="the lab’s rule for agents of low risk")
    _move(SYSTEM_ACTOR, agent, new=Agent.Status.ACTIVE, verb="agent.activate", reason="every approval is given")


def name_problem(name: str) -> str:
    """Say what is wrong with the name of a new agent; "" where it may have it."""
    taken = set(Agent.objects.values_list("name", flat=True))
    return agent_rules.name_problem(name, taken) or ""


def expiry_problem(expires: datetime) -> str:
    """Say what is wrong with the end of a registration; "" where it lies within a year."""
    now = clock.now()
    return "" if now < expires <= now + LONGEST_REGISTRATION else "Choose an end within a year from now."


def _validate(lab: Lab, owner: User, registration: Registration) -> None:
    if problem := name_problem(registration.name):
        raise Invalid(problem, code="agent_name", extra={"field": "name"})
    if registration.harness not in known_harnesses():
        raise Invalid(
            "This harness is not in the catalogue.",
            code="unknown_harness",
            remedy=harness_remedy(),
            extra={"field": "harness"},
        )
    if not registration.purpose.strip():
        raise Invalid("Say in a sentence or two what it is for.", code="purpose_missing", extra={"field": "purpose"})
    if registration.autonomy not in Agent.Autonomy.values:
        raise Invalid("Choose supervised or unattended.", code="autonomy_unknown", extra={"field": "autonomy"})
    if not LabMembership.objects.filter(lab=lab, user=owner, user__is_active=True).exists():
        raise Invalid("Its owner must belong to the lab.", code="owner_outside_lab", extra={"field": "owner"})
    if problem := expiry_problem(registration.expires):
        raise Invalid(problem, code="expiry_out_of_range", extra={"field": "expires"})
    if len(registration.harness_version) > VERSION_LENGTH or not registration.harness_version.isprintable():
        raise Invalid(
            f"A version has {VERSION_LENGTH} characters at most.", code="harness_version_malformed",
            extra={"field": "harness_version"},
        )  # fmt: skip
    _require_associated(selectors.accounts_of(owner, lab), owner, registration)


def _require_associated(known: Mapping[str, set[str]], owner: User, registration: Registration) -> None:
    """Refuse accounts and partitions that Slurm would refuse its owner.

    Of whom Slurm knows no association here, no account can be named, and partitions are taken as they are.
    """
    if strange := sorted(set(registration.accounts) - known.keys()):
        raise Invalid(
            f"{owner.username} may not charge {', '.join(strange)}.", code="account_not_associated",
            remedy=f"Choose among {', '.join(known)}." if known else "Leave the accounts out: Slurm has told of none.",
            extra={"field": "accounts"},
        )  # fmt: skip
    named = [known[account] for account in registration.accounts] or list(known.values())
    may = set[str]().union(*named)
    if may and "" not in may and (strange := sorted(set(registration.partitions) - may)):
        raise Invalid(
            f"{owner.username} may not submit to {', '.join(strange)}.", code="partition_not_associated",
            remedy=f"Choose among {', '.join(sorted(may))}.", extra={"field": "partitions"},
        )  # fmt: skip


def _name_taken(name: str) -> Invalid:
    return Invalid(name_problem(name) or "This name is taken.", code="agent_name", extra={"field": "name"})


def approve_agent(*, actor: Actor, agent: Agent) -> Agent:
    """Approve an agent for the lab or, as staff, for the facility; it becomes active once every approval is there."""
    kinds = [
        kind
        for kind, verb in (
            (AgentApproval.Kind.LAB, "agent.approve_for_lab"),
            (AgentApproval.Kind.STAFF, "agent.approve_for_facility"),
        )
        if permissions.can(actor, verb, agent)
    ]
    if not kinds:
        raise NotAllowed("Only its PI, a lab manager or staff approve an agent.", code="not_approver")
    if agent.status != Agent.Status.REQUESTED:
        raise Conflict(f"{agent.name} is {agent.get_status_display().lower()}, not requested.", code="not_requested")
    with transaction.atomic():
        # The row is the lock: of two approvals at once, the second sees the first and activates the agent.
        Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        for kind in kinds:
            _, new = AgentApproval.objects.get_or_create(
                agent=agent, kind=kind, defaults={"by": permissions.person_of(actor)}
            )
            if new:
                _record(actor, agent, "agent.approve", after={"approval": kind})
        if selectors.approvals_missing(agent):
            tell_of_waiting(agent)
        else:
            _move(actor, agent, new=Agent.Status.ACTIVE, verb="agent.activate", reason="every approval is given")
            if agent.owner_id != permissions.person_of(actor).pk:
                tell_of_approval(agent)
    return agent


_SUSPENDED_BY: Final = {Hold.Standing.LAB.value: "its lab", Hold.Standing.FACILITY.value: "the facility"}
_RESUMED_BY: Final = {
    Hold.Standing.OWNER.value: "Its owner, its PI or staff can resume it on its page.",
    Hold.Standing.LAB.value: "Its PI, a manager of the lab or staff can resume it on its page.",
    Hold.Standing.FACILITY.value: "Staff or InfoSec can resume it on its page.",
}


def suspend_agent(*, actor: Actor, agent: Agent, reason: str, until: datetime | None = None) -> Agent:
    """Stop an agent at once: its tokens answer 403 and its sockets close. Jobs in Slurm go on.

    One that is suspended is suspended as well by who stands higher, so that nobody below them resumes it.
    """
    permissions.require(actor, "agent.suspend", agent)
    _require_reason(reason)
    placed_as = permissions.standing_over(actor, agent.lab_id)
    with transaction.atomic():
        row = Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        before = Hold.objects.in_force().on(Hold.Subject.AGENT, agent.pk).filter(kind=Hold.Kind.SUSPENSION)
        if row.status == Agent.Status.SUSPENDED and all(
            permissions.stands_above(actor, agent.lab_id, hold) for hold in before
        ):
            _record(actor, agent, "agent.suspend", after={"status": row.status}, reason=reason)
        else:
            _move(actor, agent, new=Agent.Status.SUSPENDED, verb="agent.suspend", reason=reason)
        place_hold(
            actor=SYSTEM_ACTOR, subject_kind=Hold.Subject.AGENT, subject_id=agent.pk, kind=Hold.Kind.SUSPENSION,
            code=AGENT_SUSPENDED, reason=f"{agent.name} is suspended: {reason}"[:500], until=until,
            remedy=_RESUMED_BY[placed_as], placed_as=placed_as,
        )  # fmt: skip
    return agent


def resume_agent(*, actor: Actor, agent: Agent, reason: str) -> Agent:
    """Let a suspended agent work again. Other holds (containment, AUP) stay.

    Errors: `NotAllowed` where somebody of higher standing suspended it: the facility, or the lab.
    """
    permissions.require(actor, "agent.resume", agent)
    _require_reason(reason)
    with transaction.atomic():
        # The row is the lock: what is lifted below is what was looked at, not what somebody else placed meanwhile.
        Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        for hold in Hold.objects.in_force().on(Hold.Subject.AGENT, agent.pk).filter(kind=Hold.Kind.SUSPENSION):
            if not permissions.outranks(actor, agent.lab_id, hold):
                raise NotAllowed(
                    f"{agent.name} was suspended by {_SUSPENDED_BY[hold.placed_as]}.", code="suspended_by_another",
                    remedy=hold.remedy,
                )  # fmt: skip
        _move(actor, agent, new=Agent.Status.ACTIVE, verb="agent.resume", reason=reason)
        lift_holds(
            actor=SYSTEM_ACTOR, subject_kind=Hold.Subject.AGENT, subject_id=agent.pk, kind=Hold.Kind.SUSPENSION,
            reason=reason,
        )  # fmt: skip
    return agent


def retire_agent(*, actor: Actor, agent: Agent, reason: str) -> Agent:
    """End an agent for good; its tokens are revoked with it."""
    permissions.require(actor, "agent.retire", agent)
    with transaction.atomic():
        _move(actor, agent, new=Agent.Status.RETIRED, verb="agent.retire", reason=reason)
        AgentToken.objects.filter(agent=agent, revoked_at=None).update(
            revoked_at=clock.now(), revoked_by=actor.ref.label
        )
    return agent


def renew_agent(*, actor: Actor, agent: Agent, expires: datetime | None = None) -> Agent:
    """Extend an agent's registration, at most a year from now; by half a year where no end is named."""
    expires = expires or clock.now() + RENEWED_FOR
    permissions.require(actor, "agent.renew", agent)
    if agent.status == Agent.Status.RETIRED:
        raise Conflict(f"{agent.name} is retired: register a new one instead.", code="agent_retired")
    if problem := expiry_problem(expires):
        raise Invalid(problem, code="expiry_out_of_range", extra={"field": "expires"})
    with transaction.atomic():
        before = {"expires": agent.expires}
        agent.expires = expires
        agent.save(update_fields=["expires"])
        _record(actor, agent, "agent.renew", before=before, after={"expires": expires})
    return agent


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise Invalid("A reason is needed.", code="reason_missing", extra={"field": "reason"})


def _move(actor: Actor, agent: Agent, *, new: str, verb: str, reason: str) -> None:
    old = agent.status
    allowed = agent_rules.find_transition(agent_rules.AgentStatus(old), agent_rules.AgentStatus(new))
    if allowed is None or not agent.move(old=old, new=new):
        raise Conflict(f"{agent.name} is {old} and cannot become {new}.", code="agent_state")
    _record(actor, agent, verb, before={"status": old}, after={"status": new}, reason=reason)
    payload = events.AgentChanged(agent=agent.name, status=new, reason=reason)
    topics = (f"agent:{agent.pk}", f"lab:{agent.lab_id}", "facility:principals")
    live.announce([live.News(name=events.AGENT_CHANGED, topics=topics, payload=dict(payload))])


def _record(
    actor: Actor,
    agent: Agent,
    verb: str,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    reason: str = "",
) -> None:
    audit.record(
        actor=actor.ref, verb=verb, object_kind="agent", object_id=agent.pk, object_label=agent.name,
        lab_id=agent.lab_id, before=before, after=after, reason=reason,
    )  # fmt: skip

"""Publishing the acceptable-use policy, accepting it, and holding agents for which it is not accepted in time."""

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Final

from django.db import transaction

from policies import events, permissions, selectors
from policies.engine import agents_md
from policies.engine import aup as aup_engine
from policies.models import AupAcceptance, AupPersonAcceptance, AupVersion, How
from portal.core import audit, clock, live
from portal.core.errors import Conflict, Invalid, NotAllowed
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR, Actor
from principals.models import Agent, Hold
from principals.permissions import person_of
from principals.services.agents import hold_until_accepted

AT_ONCE: Final = 100  # agents held in one transaction


def current_aup() -> AupVersion:
    """Return the newest version, which is the one to accept; a new site starts with the one that ships."""
    newest = AupVersion.objects.first()
    if newest is not None:
        return newest
    source = aup_engine.default_source()
    policy = aup_engine.parse_aup(source)
    return AupVersion.objects.get_or_create(
        version=policy.version,
        defaults={"source": source, "digest": aup_engine.aup_digest(policy), "published_by": SYSTEM_ACTOR.ref.label},
    )[0]


def aup_in_force() -> AupVersion:
    """Return the version in force, which agents and nodes read; the newest where the day of none has come."""
    newest = current_aup()
    return AupVersion.objects.in_force(clock.now()).first() or newest


def read_policy(source: str) -> aup_engine.Aup:
    """Read a policy that is to be published. Errors: `Invalid` with the fault's code and remedy, naming the clause."""
    try:
        policy = aup_engine.parse_aup(source)
        aup_engine.require_publishable(policy)
        agents_md.require_readable(policy)
    except aup_engine.PolicyError as error:
        raise Invalid(
            f"The policy cannot be read: {error}", code=error.fault.code, remedy=error.fault.remedy
        ) from error
    return policy


def publish_aup(*, actor: Actor, source: str) -> AupVersion:
    """Publish a new version from TOML. In force from its day on; after its grace agents without it are held.

    Errors: `Invalid` naming the clause and its fault, `Conflict` for a version that exists.
    """
    permissions.require(actor, "aup.publish")
    policy = read_policy(source)
    current_aup()  # so that there is a version before the first day of this one
    with transaction.atomic():
        _lock()
        if AupVersion.objects.filter(version=policy.version).exists():
            raise Conflict(
                f"Version {policy.version} is published already.",
                code="aup_version_exists",
                remedy="Give the edited text a `version` of its own.",
            )
        now = clock.now()
        starts = datetime.combine(policy.effective_day or now.date(), time(), tzinfo=UTC)
        holds_from = max(now, starts) + timedelta(days=policy.grace_days)
        version = AupVersion.objects.create(
            version=policy.version, source=source, digest=aup_engine.aup_digest(policy), published_by=actor.ref.label,
            published=now, effective=starts, holds_from=holds_from,
        )  # fmt: skip
        audit.record(
            actor=actor.ref, verb="aup.publish", object_kind="aup", object_id=version.pk, object_label=version.version,
            after={"digest": version.digest, "effective": starts, "holds_from": holds_from},
        )  # fmt: skip
        live.announce([live.News(events.AUP_PUBLISHED, ("facility:policies",), {"version": version.version})])
        transaction.on_commit(hold_lapsed_aup, robust=True)  # where there is no grace; the sweep does it anyway
    return version


def hold_lapsed_aup() -> int:
    """Hold every agent for which the version it needs is not accepted; return how many were held. Again: none.

    What an agent needs is the newest version whose grace is over, or any newer one.
    """
    required = AupVersion.objects.required(clock.now()).first()
    if required is None:
        return 0
    held = 0
    while chunk := list(selectors.agents_to_hold(required)[:AT_ONCE]):
        with transaction.atomic():
            _lock()
            still = selectors.agents_to_hold(required).filter(pk__in=[agent.pk for agent in chunk])
            for agent in still:
                reason = f"The acceptable-use policy {required.version} is not accepted for {agent.name}."
                hold_until_accepted(agent, reason)
                held += 1
    return held


def _lock() -> None:
    """Keep publishing, holding and accepting apart: else an acceptance of the old version lifts the hold of the new.

    The oldest version is the lock, for it is the one row that every caller finds.
    """
    AupVersion.objects.select_for_update(no_key=True).order_by("published", "pk").first()


def accept_aup(*, actor: Actor, agent: Agent, version: str, how: str = How.UNKNOWN) -> AupAcceptance:
    """Accept the newest version for an agent; its hold is lifted. Accepting twice changes nothing.

    It holds as long as who answers for the agent does: a new owner accepts anew.

    Errors: `Conflict` where a newer version was published meanwhile, `NotAllowed` for people who do not answer for it.
    """
    permissions.require(actor, "aup.accept", agent)
    return _accept(actor, [agent], version, how)[0]


def accept_aup_for_mine(*, actor: Actor, version: str) -> list[AupAcceptance]:
    """Accept the newest version as a person, and for every agent that one owns and still answers for, in one act."""
    person = person_of(actor)
    own = Agent.objects.filter(owner=person).exclude(status=Agent.Status.RETIRED).select_related("lab", "owner")
    agents = [agent for agent in own if permissions.can(actor, "aup.accept", agent)]
    if not agents and version == current_aup().version:
        raise Conflict(
            "You answer for no agent, so there is nothing to accept.", code="no_agents",
            remedy="Register an agent on My lab; accepting is a part of it.",
        )  # fmt: skip
    return _accept(actor, agents, version, How.AUP_PAGE)


def _accept(actor: Actor, agents: Iterable[Agent], version: str, how: str) -> list[AupAcceptance]:
    if actor.user is None:
        raise NotAllowed("Only a person accepts the policy.", code="not_a_person")
    with transaction.atomic():
        _lock()
        current = current_aup()
        if version != current.version:
            raise Conflict(
                f"Version {current.version} was published meanwhile.", code="aup_version_outdated",
                remedy="Read the new version and accept that.",
            )  # fmt: skip
        evidence = {"user": actor.user, "digest": current.digest, "how": how}
        _, new = AupPersonAcceptance.objects.get_or_create(version=current, user=actor.user, defaults=evidence)
        if new:
            _record(actor, "user", actor.user.pk, actor.user.username, None, current, how)
        return [_accept_for(actor, agent, current, evidence) for agent in agents]


def _accept_for(actor: Actor, agent: Agent, current: AupVersion, evidence: dict[str, object]) -> AupAcceptance:
    owner = Agent.objects.select_for_update(no_key=True, of=("self",)).select_related("owner").get(pk=agent.pk).owner
    acceptance, new = AupAcceptance.objects.get_or_create(version=current, agent=agent, owner=owner, defaults=evidence)
    lifted = principal_services.lift_holds(
        actor=SYSTEM_ACTOR, subject_kind=Hold.Subject.AGENT, subject_id=agent.pk, kind=Hold.Kind.AUP,
        reason=f"AUP {current.version} accepted by {actor.ref.label}",
    )  # fmt: skip
    if lifted or new:
        _record(actor, "agent", agent.pk, agent.name, agent.lab_id, current, str(evidence["how"]))
    return acceptance


def _record(
    actor: Actor, kind: str, pk: int, label: str, lab_id: int | None, current: AupVersion, how: str
) -> None:  # fmt: skip
    audit.record(
        actor=actor.ref, verb="aup.accept", object_kind=kind, object_id=pk, object_label=label, lab_id=lab_id,
        after={"version": current.version, "digest": current.digest, "how": how},
    )  # fmt: skip


def export_acceptances(*, actor: Actor) -> list[AupAcceptance]:
    """Return the acceptances that somebody takes away as a file; that they do is noted first."""
    permissions.require(actor, "aup.export", remedy="Ask the PI or a manager of your lab.")
    rows = list(selectors.acceptances_for(actor))
    with transaction.atomic():
        audit.record(
            actor=actor.ref, verb="aup.export", object_kind="aup", object_id="acceptances", after={"rows": len(rows)}
        )
    return rows

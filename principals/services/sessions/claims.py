"""Sessions nobody had registered: their owner says of which agent they are, and may take it back."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.core import audit, clock
from portal.core.errors import Conflict, Invalid, NotAllowed
from principals import events, permissions
from principals.actors import Actor
from principals.models import Agent, AgentSession, ClaimedSession, SessionClaim
from principals.services.sessions.recording import may_work_there

CLAIMED_FOR: Final = timedelta(days=30)  # what ended longer ago is not asked about any more
MOST_AT_ONCE: Final = 1000


def unregistered_of(actor: Actor) -> QuerySet[AgentSession]:
    """Return the sessions of harnesses under a person's own login names that belong to no agent, newest first."""
    if actor.user is None or not actor.is_person:
        return AgentSession.objects.none()
    return AgentSession.objects.filter(
        kind=AgentSession.Kind.AGENT, agent=None, cluster_user__user=actor.user,
        started__gte=clock.now() - CLAIMED_FOR,
    ).order_by("-started", "-pk")  # fmt: skip


def earlier_than(session: AgentSession) -> QuerySet[AgentSession]:
    """Return the unregistered sessions of the same harness and login name that began before one."""
    return AgentSession.objects.filter(
        kind=AgentSession.Kind.AGENT, agent=None, cluster_user=session.cluster_user_id, harness=session.harness,
        started__lte=session.started, started__gte=clock.now() - CLAIMED_FOR,
    ).exclude(pk=session.pk).order_by("-started", "-pk")  # fmt: skip


def claim_session(
    *, actor: Actor, session: AgentSession, agent: Agent, with_earlier: bool = False
) -> SessionClaim:  # fmt: skip
    """Tie a session that nobody had registered to an agent of its person; with earlier ones of the same, if wanted.

    Its jobs follow. Earlier ones on hosts that the agent may not use stay as they are. Errors: `NotAllowed` for
    somebody else's session or agent, `Invalid` for another harness or a host it may not use, `Conflict` where it is an
    agent's already, this one's too: what was tied without a claim could be taken away by undoing one. And for one that
    began too long ago: reports of its time are read.
    """
    person = permissions.person_of(actor)
    if session.cluster_user.user_id != person.pk:
        raise NotAllowed("Only the person whose login name it ran under claims a session.", code="not_your_session")
    if agent.owner_id != person.pk or not permissions.can(actor, "agent.issue_token", agent):
        raise NotAllowed(f"{agent.name} is not yours.", code="not_your_agent", remedy="Choose an agent of yours.")
    if session.agent_id is not None:
        raise _claimed()
    _require_fitting(session, agent)
    with transaction.atomic():
        session.cluster.lock()
        ids = [session.pk]
        if with_earlier:
            ids += [row.pk for row in earlier_than(session)[:MOST_AT_ONCE] if may_work_there(agent, row)]
        # Nobody's when it was read: this agent's, it was tied by the registration that claims it.
        free = AgentSession.objects.filter(Q(agent=None) | Q(agent=agent), pk__in=ids)
        taken = set(free.values_list("pk", flat=True))
        if session.pk not in taken:
            raise _claimed()
        claim = SessionClaim.objects.create(agent=agent, by=person)
        ClaimedSession.objects.bulk_create(ClaimedSession(claim=claim, session_id=pk) for pk in sorted(taken))
        _give(taken, agent)
        _note_seen(agent, session)
        _record(actor, claim, "session.claim", taken)
    return claim


def undo_claim(*, actor: Actor, claim: SessionClaim) -> int:
    """Take a claim back: its sessions belong to no agent again, and nothing ties them by itself; return how many."""
    person = permissions.person_of(actor)
    if person.pk not in (claim.by_id, claim.agent.owner_id):
        raise NotAllowed("Only who claimed them, or who answers for the agent now, takes this back.", code="not_yours")
    with transaction.atomic():
        if not SessionClaim.objects.filter(pk=claim.pk, undone=None).update(undone=clock.now()):
            raise Conflict("This claim is taken back already.", code="claim_undone")
        sessions = AgentSession.objects.filter(claims__claim=claim, agent=claim.agent)
        left = set(sessions.values_list("pk", flat=True))
        _give(left, None)
        _record(actor, claim, "session.undo_claim", left)
    return len(left)


def _claimed() -> Conflict:
    return Conflict("This session belongs to an agent already.", code="session_claimed")


def _require_fitting(session: AgentSession, agent: Agent) -> None:
    if session.kind != AgentSession.Kind.AGENT or agent.status == Agent.Status.RETIRED:
        raise Conflict("This is no session of a harness, or the agent is retired.", code="not_claimable")
    if session.harness != agent.harness:
        raise Invalid(
            f"{agent.name} is registered for another harness.", code="harness_differs",
            remedy="Register an agent of this harness.",
        )  # fmt: skip
    if session.started < clock.now() - CLAIMED_FOR:
        raise Conflict(f"This session began more than {CLAIMED_FOR.days} days ago.", code="session_too_old")
    if not may_work_there(agent, session):
        raise Invalid(
            f"{agent.name} may not use {session.host}.", code="host_not_allowed",
            remedy="Register an agent that may.",
        )  # fmt: skip


def _give(ids: Collection[int], agent: Agent | None) -> None:
    """Change whose sessions are; whoever counts by agents hears of it in the same transaction."""
    AgentSession.objects.filter(pk__in=ids).update(agent=agent)
    if ids:
        events.sessions_adopted.send(Agent, session_ids=sorted(ids))


def _note_seen(agent: Agent, session: AgentSession) -> None:
    until = session.ended or session.last_seen or clock.now()
    if agent.last_seen is None or agent.last_seen < until:
        Agent.objects.filter(pk=agent.pk).update(last_seen=until)


def _record(actor: Actor, claim: SessionClaim, verb: str, sessions: Collection[int]) -> None:
    agent = claim.agent
    audit.record(
        actor=actor.ref, verb=verb, object_kind="agent", object_id=agent.pk, object_label=agent.name,
        lab_id=agent.lab_id, after={"claim": claim.pk, "sessions": len(sessions)},
    )  # fmt: skip

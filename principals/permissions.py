"""Who may do what. The only module that knows django-guardian.

Lists are scoped by `visible_to(actor)` on the querysets; this module answers whether an actor may *act*, and builds the
actor from a person, a token or the system.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.contrib.contenttypes.models import ContentType
from guardian.models import UserObjectPermission
from guardian.shortcuts import assign_perm, get_objects_for_user, remove_perm

from portal.core.actors import ActorRef
from portal.core.errors import NotAllowed
from principals.actors import Actor
from principals.models import Agent, AgentToken, Cluster, Hold, Lab, LabMembership, ServiceAccount, ServiceToken, User

LOOK_AT_LAB = "principals.look_at_lab"
Rules = Mapping[str, Callable[[Actor, Any], bool]]
MANAGING_ROLES = frozenset({LabMembership.Role.PI, LabMembership.Role.MANAGER})


def actor_for_user(user: User) -> Actor:
    """Return the actor of a signed-in person: two queries, whatever the size of the facility."""
    roles = dict(LabMembership.objects.filter(user=user).values_list("lab_id", "role"))
    granted = get_objects_for_user(user, LOOK_AT_LAB, klass=Lab, accept_global_perms=False, with_superuser=False)
    return Actor(
        ref=ActorRef(kind="user", id=str(user.pk), label=user.username),
        user=user,
        is_research_computing=user.is_research_computing,
        is_infosec=user.is_infosec,
        is_auditor=user.is_auditor,
        member_lab_ids=frozenset(roles),
        managed_lab_ids=frozenset(lab for lab, role in roles.items() if role in MANAGING_ROLES),
        pi_lab_ids=frozenset(lab for lab, role in roles.items() if role == LabMembership.Role.PI),
        granted_lab_ids=frozenset(granted.values_list("pk", flat=True)),
    )


def may_look_at_jobs(user: User, lab_id: int) -> bool:
    """Say whether a person manages a lab or was let look at it, now."""
    if LabMembership.objects.filter(user=user, lab_id=lab_id, role__in=MANAGING_ROLES).exists():
        return True
    return lab_id in labs_granted_to([user.pk]).get(user.pk, frozenset())


def actor_for_agent(token: AgentToken) -> Actor:
    """Return the actor of an agent's token: its owner's person, none of its owner's roles."""
    agent = token.agent
    # `lab:read` is the explicit grant by which an agent sees its lab's jobs, not only its owner's. It reaches as far
    # as the owner does: a member who may not look at the lab's jobs cannot lend an agent that sight.
    lends = "lab:read" in token.scopes and may_look_at_jobs(agent.owner, agent.lab_id)
    granted = frozenset({agent.lab_id}) if lends else frozenset()
    return Actor(
        ref=ActorRef(
            kind="agent",
            id=str(agent.pk),
            label=" › ".join([agent.name, *token.chain]),
            on_behalf_of=agent.owner.username,
        ),
        user=agent.owner,
        agent=agent,
        token_key=token.key,
        token=token,
        scopes=frozenset(token.scopes),
        member_lab_ids=frozenset({agent.lab_id}),
        granted_lab_ids=granted,
    )


def actor_for_service(token: ServiceToken) -> Actor:
    """Return the actor of a piece of site automation."""
    service: ServiceAccount = token.service
    return Actor(
        ref=ActorRef(kind="service", id=str(service.pk), label=service.name),
        service=service,
        token_key=token.key,
        scopes=frozenset(token.scopes),
    )


class Rulebook:
    """What each verb of an app needs, and the two questions that are asked of it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def can(self, actor: Actor, verb: str, obj: Any = None) -> bool:
        """Say whether `actor` may do `verb` to `obj`. An unknown verb is a programming error and raises KeyError."""
        return self._rules[verb](actor, obj)

    def require(self, actor: Actor, verb: str, obj: Any = None, *, remedy: str = "") -> None:
        """Raise `NotAllowed` unless `actor` may do `verb` to `obj`."""
        if not self.can(actor, verb, obj):
            raise NotAllowed(
                f"{actor.ref.label or 'You'} may not do this.", code="not_allowed", remedy=remedy, extra={"verb": verb}
            )


# --- what each verb needs --------------------------------------------------------------------------------
def _manages(actor: Actor, lab_id: int) -> bool:
    return actor.is_person and lab_id in actor.managed_lab_ids


def _staff(actor: Actor, _: Any) -> bool:
    return actor.is_system or (actor.is_person and actor.is_research_computing)


def _infosec(actor: Actor, _: Any) -> bool:
    return actor.is_system or (actor.is_person and actor.is_infosec)


def _looks_everywhere(actor: Actor, _: Any) -> bool:
    return actor.sees_facility


def _staff_or_auditor(actor: Actor, obj: Any) -> bool:
    return _staff(actor, obj) or (actor.is_person and actor.is_auditor)


def _lab_manager_or_staff(actor: Actor, lab: Lab) -> bool:
    return _staff(actor, lab) or _manages(actor, lab.pk)


def _lab_member(actor: Actor, lab: Lab) -> bool:
    return actor.is_person and lab.pk in actor.member_lab_ids


def _asks_for_agents(actor: Actor, lab: Lab) -> bool:
    """A member registers; an agent asks in its own lab, for its owner, and people decide."""
    return _lab_member(actor, lab) or (actor.agent is not None and actor.agent.lab_id == lab.pk)


def _sets_rule(actor: Actor, lab: Lab) -> bool:
    return actor.is_person and lab.pk in actor.pi_lab_ids


def _answers_for(actor: Actor, agent: Agent) -> bool:
    if not actor.is_person or actor.user is None:
        return False
    # Its owner answers for it while they belong to its lab.
    owns = agent.owner_id == actor.user.pk and agent.lab_id in actor.member_lab_ids
    return owns or _manages(actor, agent.lab_id)


def _rotates(actor: Actor, token: AgentToken) -> bool:
    # A token rolls over itself alone; whoever answers for its agent, each of them.
    itself = actor.agent is not None and actor.token_key == token.key and "token:rotate" in actor.scopes
    return itself or _answers_for(actor, token.agent)


def _agent_manager_or_staff(actor: Actor, agent: Agent) -> bool:
    return _staff(actor, agent) or _infosec(actor, agent) or _answers_for(actor, agent)


def standing_over(actor: Actor, lab_id: int) -> str:
    """Say as whom an actor stops agents of a lab: the facility, the lab, or the owner of what is stopped."""
    if _staff(actor, None) or _infosec(actor, None):
        return Hold.Standing.FACILITY.value
    return (Hold.Standing.LAB if _manages(actor, lab_id) else Hold.Standing.OWNER).value


def outranks(actor: Actor, lab_id: int, hold: Hold) -> bool:
    """Say whether who would lift a hold stands as high as who placed it: a PI lifts no suspension of the facility."""
    return Hold.Standing.values.index(standing_over(actor, lab_id)) >= hold.rank


def stands_above(actor: Actor, lab_id: int, hold: Hold) -> bool:
    """Say whether an actor stands higher than who placed a hold: then theirs counts beside it."""
    return Hold.Standing.values.index(standing_over(actor, lab_id)) > hold.rank


def _approves_for_lab(actor: Actor, agent: Agent) -> bool:
    return _manages(actor, agent.lab_id)


def _reports_findings(actor: Actor, cluster: Cluster) -> bool:
    if actor.service is None:
        return _staff(actor, cluster) or _infosec(actor, cluster)
    return "ingest:findings" in actor.scopes and actor.service.cluster_id in (None, cluster.pk)


RULES: Rules = {
    "facility.look": _looks_everywhere,
    "facility.run": _staff,
    "ingest.look": _staff_or_auditor,
    "ingest.expect": _staff,
    "ingest.retry": _staff,
    "lab.look": lambda actor, lab: actor.sees_facility or lab.pk in (actor.member_lab_ids | actor.granted_lab_ids),
    "lab.look_at_jobs": lambda actor, lab: actor.sees_facility or lab.pk in actor.visible_lab_ids,
    "lab.manage": _lab_manager_or_staff,
    "lab.set_rule": _sets_rule,
    "agent.register": _asks_for_agents,
    "agent.approve_for_lab": _approves_for_lab,
    "agent.approve_for_facility": _staff,
    "agent.issue_token": _answers_for,
    "agent.rotate_token": _rotates,
    "agent.renew": _answers_for,
    "agent.revoke_token": _agent_manager_or_staff,
    "agent.suspend": _agent_manager_or_staff,
    "agent.resume": _agent_manager_or_staff,
    "agent.hand_over": lambda actor, agent: _staff(actor, agent) or _answers_for(actor, agent),
    "agent.retire": _agent_manager_or_staff,
    "hold.place": lambda actor, subject: _staff(actor, subject) or _infosec(actor, subject),
    "agents.stop_of_lab": lambda actor, lab: _manages(actor, lab.pk),
    "agents.stop_own": lambda actor, _: actor.is_person,
    "kill_switch.look": _looks_everywhere,
    "kill_switch.pull": lambda actor, subject: _staff(actor, subject) or _infosec(actor, subject),
    "appeal.answer": lambda actor, subject: _staff(actor, subject) or _infosec(actor, subject),
    "person.open_data": _staff,
    "service.manage": _staff,
    "finding.report": _reports_findings,
    "incident.act": _infosec,
}
_book = Rulebook(RULES)
can, require = _book.can, _book.require


def person_of(actor: Actor) -> User:
    """Return the person who acts. Errors: `NotAllowed` for an agent, a service or the system."""
    if actor.user is None or not actor.is_person:
        raise NotAllowed("Only a person does this.", code="not_a_person")
    return actor.user


# --- explicit grants -------------------------------------------------------------------------------------
def grant_look_at_lab(user: User, lab: Lab) -> None:
    """Let a person outside a lab look at its agents and jobs."""
    assign_perm(LOOK_AT_LAB, user, lab)


def labs_granted_to(user_ids: Collection[int]) -> dict[int, frozenset[int]]:
    """Return for each of some people the ids of the labs they were let look at: one query for all of them."""
    codename = LOOK_AT_LAB.partition(".")[2]
    grants = UserObjectPermission.objects.filter(
        user_id__in=user_ids, permission__codename=codename, content_type=ContentType.objects.get_for_model(Lab)
    )
    labs: dict[int, set[int]] = {}
    for user_id, lab_id in grants.values_list("user_id", "object_pk"):
        labs.setdefault(user_id, set()).add(int(lab_id))
    return {user_id: frozenset(found) for user_id, found in labs.items()}


def withdraw_look_at_lab(user: User, lab: Lab) -> None:
    """Take that grant back."""
    remove_perm(LOOK_AT_LAB, user, lab)

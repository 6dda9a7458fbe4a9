"""Reads of `principals` that span models."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.core import clock
from principals.engine import tiers
from principals.models import (
    Agent,
    AgentApproval,
    AgentSession,
    AgentToken,
    Association,
    Hold,
    Lab,
    LabMembership,
    Place,
    User,
)

REMIND_AT: Final = (30, 7, 1)  # days before the end of a registration


def places_of(agent: Agent) -> tuple[Place, ...]:
    """Return whatever a hold may be on to stop an agent: itself, its owner, its lab, its harness, every agent."""
    return (
        Place("agent", agent.pk),
        Place("user", agent.owner_id),
        Place("owner", agent.owner_id),
        Place("lab", agent.lab_id),
        Place("harness", name=agent.harness),
        Place("all"),
    )


def is_held(agent: str = "") -> Exists:
    """Say in a query whether a hold in force stops each agent; `agent`: the prefix of its columns, as `agent__`."""
    at = {name: OuterRef(f"{agent}{name}") for name in ("owner_id", "lab_id", "harness")}
    own = OuterRef(f"{agent}pk")
    return Exists(
        Hold.objects.in_force().filter(
            Q(subject_kind="agent", subject_id=own)
            | Q(subject_kind__in=("user", "owner"), subject_id=at["owner_id"])
            | Q(subject_kind="lab", subject_id=at["lab_id"])
            | Q(subject_kind="harness", subject_id=0, subject_name=at["harness"])
            | Q(subject_kind="all", subject_id=0)
        )
    )


def agents_at(place: Place) -> QuerySet[Agent]:
    """Return the agents, retired ones left out, that a hold on a place stops."""
    by: dict[str, Q] = {
        "agent": Q(pk=place.id),
        "user": Q(owner_id=place.id),
        "owner": Q(owner_id=place.id),
        "lab": Q(lab_id=place.id),
        "harness": Q(harness=place.name),
        "all": Q(),
    }
    return Agent.objects.filter(by[place.kind]).exclude(status=Agent.Status.RETIRED)


def agents_at_any(places: Iterable[Place]) -> QuerySet[Agent]:
    """Return the agents that holds on any of some places stop, each once."""
    either = Q(pk__in=())
    for place in places:
        either |= Q(pk__in=agents_at(place).values("pk"))
    return Agent.objects.filter(either)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far stopping some agents goes: with their people, labs, open sessions, and tokens that work."""

    agents: int
    people: int
    labs: int
    sessions: int
    tokens: int


def reach_of(place: Place) -> Reach:
    """Count what a hold on a place would stop now."""
    agents = agents_at(place)
    tokens = AgentToken.objects.filter(agent__in=agents, revoked_at=None, expires__gt=clock.now())
    return Reach(
        agents=agents.count(),
        people=agents.values("owner").distinct().count(),
        labs=agents.values("lab").distinct().count(),
        sessions=AgentSession.objects.filter(agent__in=agents, ended=None).count(),
        tokens=tokens.count(),
    )


def holds_on_agent(agent: Agent) -> QuerySet[Hold]:
    """Return the holds in force that stop an agent."""
    return Hold.objects.in_force().filter(_on_any(places_of(agent)))


def holds_concerning(person: User) -> QuerySet[Hold]:
    """Return the holds in force on a person, or on what stops an agent that they own or are PI of."""
    heads = person.memberships.filter(role=LabMembership.Role.PI).values("lab")
    agents = Agent.objects.filter(Q(owner=person) | Q(lab__in=heads)).exclude(status=Agent.Status.RETIRED)
    places = {place for agent in agents for place in places_of(agent) if place.kind != "user"}
    return Hold.objects.in_force().filter(_on_any(places | {Place("user", person.pk), Place("owner", person.pk)}))


def holds_on_agents(agents: Iterable[Agent]) -> dict[int, list[Hold]]:
    """Return the holds in force that stop each agent of a page, by its id: one query."""
    listed = list(agents)
    places: dict[Place, list[Hold]] = {place: [] for agent in listed for place in places_of(agent)}
    for hold in Hold.objects.in_force().filter(_on_any(places)).order_by("placed_at"):
        if hold.place in places:
            places[hold.place].append(hold)
    return {agent.pk: [hold for place in places_of(agent) for hold in places[place]] for agent in listed}


def _on_any(places: Collection[Place]) -> Q:
    """Return the condition of a hold on one of some places."""
    ids: dict[str, set[int]] = {}
    for place in places:
        ids.setdefault(place.kind, set()).add(place.id)
    names = {place.name for place in places if place.name}
    subjects = Q(pk=None)
    for kind, found in ids.items():
        named = Q(subject_name__in=names) if kind == Hold.Subject.HARNESS else Q()
        subjects |= Q(subject_kind=kind, subject_id__in=found) & named
    return subjects


def rotation_of(token: AgentToken) -> list[AgentToken]:
    """Return what a token was rolled over from and to, as far as it goes: a query for each step."""
    found = {token.pk: token}
    before, after = token.replaces, list(token.replaced_by.all())
    while before is not None and before.pk not in found:
        found[before.pk] = before
        before = before.replaces
    while after:
        found |= {row.pk: row for row in after}
        after = list(AgentToken.objects.filter(replaces__in=after).exclude(pk__in=found))
    return [row for pk, row in found.items() if pk != token.pk]


def risk_of(agent: Agent) -> tiers.RiskAssessment:
    """Assess an agent's risk tier from what its registration says."""
    return tiers.assess_risk(
        tiers.RiskInputs(
            autonomy=tiers.Autonomy(agent.autonomy),
            uses_gpu=any("gpu" in partition for partition in agent.partitions),
            any_partition=not agent.partitions,
            hosts=max(1, len(agent.hosts)),
            accounts=len(agent.accounts),
            hours=agent.working_hours.words if agent.working_hours else "",
            life_days=(agent.expires - agent.created).days if agent.expires else 0,
        )
    )


def approvals_needed(agent: Agent) -> set[str]:
    """Return the approvals an agent needs: its lab's always, staff's from the site's threshold on."""
    needed = {str(AgentApproval.Kind.LAB)}
    if risk_of(agent).score >= settings.STAFF_APPROVE_FROM:
        needed.add(str(AgentApproval.Kind.STAFF))
    return needed


def rule_approves(agent: Agent) -> bool:
    """Say whether its lab's own rule lets an agent in: it is of low risk, and a PI of the lab switched the rule on."""
    low = risk_of(agent).tier is tiers.Tier.STANDARD and approvals_needed(agent) == {AgentApproval.Kind.LAB}
    return low and rule_holds(agent.lab)


def rule_holds(lab: Lab) -> bool:
    """Say whether a lab's rule for agents of low risk is on, and whoever switched it on is its PI still."""
    by = lab.low_risk_rule_by
    return by is not None and by.is_active and by.memberships.filter(lab=lab, role=LabMembership.Role.PI).exists()


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A registration whose end is to be announced: so many days before it, at most."""

    agent: Agent
    days: int


def reminders_due(now: datetime) -> list[DueReminder]:
    """Return the active agents whose end is near enough for a step (30, 7, 1 days) not announced yet: two queries.

    Only the last step that is due counts: who was switched off for a month gets one word, not three.
    """
    soon = Agent.objects.filter(status=Agent.Status.ACTIVE, expires__gt=now, expires__lte=now + timedelta(REMIND_AT[0]))
    due = []
    for agent in soon.order_by("expires", "pk").prefetch_related("reminders"):
        days = min(step for step in REMIND_AT if agent.expires <= now + timedelta(step))
        if not any(each.expires == agent.expires and each.days <= days for each in agent.reminders.all()):
            due.append(DueReminder(agent, days))
    return due


def owner_left(agent: Agent) -> bool:
    """Say whether who answers for an agent cannot any more: switched off, or no longer of its lab."""
    return not agent.owner.is_active or not agent.owner.memberships.filter(lab=agent.lab_id).exists()


def accounts_of(owner: User, lab: Lab) -> dict[str, set[str]]:
    """Return the accounts of a lab that a person may charge, as Slurm tells; with partitions, "" being any."""
    known = Association.objects.filter(cluster_user__user=owner, account__lab=lab, ended=None)
    accounts: dict[str, set[str]] = {}
    for account, partition in known.order_by("account__name").values_list("account__name", "partition"):
        accounts.setdefault(account, set()).add(partition)
    return accounts


def approvals_missing(agent: Agent) -> set[str]:
    """Return the approvals an agent still lacks."""
    return approvals_needed(agent) - {approval.kind for approval in agent.approvals.all()}


def current_session(agent: Agent) -> AgentSession | None:
    """Return the newest session of an agent that has not ended."""
    return agent.sessions.filter(ended=None).order_by("-started").first()

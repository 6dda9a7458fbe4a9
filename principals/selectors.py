"""Reads of `principals` that span models."""

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q, QuerySet

from principals.engine import tiers
from principals.models import Agent, AgentApproval, AgentSession, Hold


def holds_on_agent(agent: Agent) -> QuerySet[Hold]:
    """Return the holds in force that stop an agent: on itself, its owner or its lab."""
    return Hold.objects.in_force().filter(_on(agent.pk, agent.owner_id, agent.lab_id))


def has_hold() -> Exists:
    """Say in a query of agents whether a hold in force stops each."""
    return Exists(Hold.objects.in_force().filter(_on(OuterRef("pk"), OuterRef("owner_id"), OuterRef("lab_id"))))


def _on(agent_id: int | OuterRef, owner_id: int | OuterRef, lab_id: int | OuterRef) -> Q:
    return (
        Q(subject_kind="agent", subject_id=agent_id)
        | Q(subject_kind="user", subject_id=owner_id)
        | Q(subject_kind="lab", subject_id=lab_id)
    )


def holds_on_agents(agents: Iterable[Agent]) -> dict[int, list[Hold]]:
    """Return the holds in force that stop each agent of a page, by its id: one query."""
    listed = list(agents)
    places: dict[tuple[str, int], list[Hold]] = {}
    for agent in listed:
        places |= {place: [] for place in _places_of(agent)}
    subjects = Q(pk=None)
    for kind in ("agent", "user", "lab"):
        subjects |= Q(subject_kind=kind, subject_id__in=[pk for one, pk in places if one == kind])
    for hold in Hold.objects.in_force().filter(subjects).order_by("placed_at"):
        places[hold.subject_kind, hold.subject_id].append(hold)
    return {agent.pk: [hold for place in _places_of(agent) for hold in places[place]] for agent in listed}


def _places_of(agent: Agent) -> tuple[tuple[str, int], ...]:
    return ("agent", agent.pk), ("user", agent.owner_id), ("lab", agent.lab_id)


def risk_of(agent: Agent) -> tiers.RiskAssessment:
    """Assess an agent's risk tier from what its registration says."""
    return tiers.assess_risk(
        tiers.RiskInputs(
            autonomy=tiers.Autonomy(agent.autonomy),
            uses_gpu=any("gpu" in partition for partition in agent.partitions),
            hosts=max(1, len(agent.hosts)),
        )
    )


def approvals_needed(agent: Agent) -> set[str]:
    """Return the approvals an agent needs: its lab's always, staff's above the standard tier."""
    needed = {str(AgentApproval.Kind.LAB)}
    if risk_of(agent).tier is not tiers.Tier.STANDARD:
        needed.add(str(AgentApproval.Kind.STAFF))
    return needed


def approvals_missing(agent: Agent) -> set[str]:
    """Return the approvals an agent still lacks."""
    return approvals_needed(agent) - {approval.kind for approval in agent.approvals.all()}


def current_session(agent: Agent) -> AgentSession | None:
    """Return the newest session of an agent that has not ended."""
    return agent.sessions.filter(ended=None).order_by("-started").first()

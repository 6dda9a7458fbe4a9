"""Rows for tests, as small as they can be. Everything a test cares about it passes itself."""

from datetime import timedelta
from itertools import count
from typing import Any

from portal.core import clock
from principals.actors import SYSTEM_ACTOR, Actor
from principals.models import (
    Agent,
    AgentToken,
    Cluster,
    ClusterUser,
    Hold,
    Lab,
    LabMembership,
    ServiceAccount,
    SlurmAccount,
    User,
)
from principals.permissions import actor_for_user
from principals.services import holds
from principals.services.tokens import issuing as token_services

_numbers = count(1)


def make_user(username: str = "", **fields: Any) -> User:
    """A person who cannot sign in with a password (hashing one costs 0.2 s)."""
    return User.objects.create_user(username or f"u{next(_numbers):04}", **fields)


def make_lab(name: str = "", **members: User) -> Lab:
    """A lab; `make_lab("okafor", pi=user)` gives people their places."""
    name = name or f"lab{next(_numbers)}"
    lab = Lab.objects.create(name=name, title=f"{name.capitalize()} Lab")
    for role, user in members.items():
        LabMembership.objects.create(lab=lab, user=user, role=role.rstrip("0123456789"))
    return lab


def make_cluster(name: str = "aster", **fields: Any) -> Cluster:
    return Cluster.objects.get_or_create(name=name, defaults=fields)[0]


def make_cluster_user(cluster: Cluster, user: User) -> ClusterUser:
    return ClusterUser.objects.get_or_create(cluster=cluster, login=user.username, defaults={"user": user})[0]


def make_account(cluster: Cluster, lab: Lab) -> SlurmAccount:
    return SlurmAccount.objects.create(cluster=cluster, name=f"{lab.name}_lab", lab=lab)


def make_agent(lab: Lab, owner: User, name: str = "", *, held: bool = False, **fields: Any) -> Agent:
    """An active agent; `held=True` leaves it without an accepted AUP."""
    defaults: dict[str, Any] = {
        "harness": "claude-code",
        "purpose": "Runs membrane simulations.",
        "status": Agent.Status.ACTIVE,
        "expires": clock.now() + timedelta(days=90),
        "requested_by": owner,
    }
    agent = Agent.objects.create(
        lab=lab, owner=owner, name=name or f"{lab.name}-agent-{next(_numbers)}", **(defaults | fields)
    )
    if held:
        holds.place_hold(
            actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=agent.pk, kind=Hold.Kind.AUP, code="aup_required",
            reason="The acceptable-use policy is not accepted.", remedy="Accept it on My lab.",
        )  # fmt: skip
    return agent


def make_token(agent: Agent, *scopes: str, **fields: Any) -> str:
    """The plain token of an agent, with the scopes offered by default or those named."""
    issued = token_services.issue_agent_token(
        actor=actor_for_user(agent.owner), agent=agent, scope_names=scopes or None, **fields
    )
    return issued.plain


def token_row(plain: str) -> AgentToken:
    return AgentToken.objects.get(key=plain.split("_")[1].split(".")[0])


def make_service_token(*scopes: str, cluster: Cluster | None = None, name: str = "") -> str:
    """The plain token of a piece of site automation."""
    service = ServiceAccount.objects.create(name=name or f"collector-{next(_numbers)}", cluster=cluster)
    kinds = ("jobs", "events", "sessions", "findings", "gpu", "activity")
    wanted = scopes or tuple(f"ingest:{kind}" for kind in kinds)
    return token_services.issue_service_token(actor=SYSTEM_ACTOR, service=service, scope_names=wanted).plain


def actor_of(user: User) -> Actor:
    """The actor of a person, with the roles and labs they have now."""
    return actor_for_user(User.objects.get(pk=user.pk))

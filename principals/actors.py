"""Who acts, as every service, selector and `visible_to` takes it: a person, an agent, a service, the system."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from portal.core.actors import SYSTEM, ActorRef

if TYPE_CHECKING:
    from principals.models import Agent, AgentToken, ServiceAccount, User


@dataclass(frozen=True, slots=True)
class Actor:
    """A principal with what it may reach. Built in `principals.permissions`, never by hand outside tests.

    An agent has `user` (its owner) and `agent`, and none of its owner's roles: what an agent reads goes to an outside
    model provider, so it sees less than the person it acts for.
    """

    ref: ActorRef
    user: "User | None" = None
    agent: "Agent | None" = None
    service: "ServiceAccount | None" = None
    token_key: str = ""
    token: "AgentToken | None" = None  # the row of an agent's token, as its check read it
    scopes: frozenset[str] = frozenset()
    is_research_computing: bool = False
    is_infosec: bool = False
    is_auditor: bool = False
    member_lab_ids: frozenset[int] = field(default_factory=frozenset)
    managed_lab_ids: frozenset[int] = field(default_factory=frozenset)  # as PI or manager
    pi_lab_ids: frozenset[int] = field(default_factory=frozenset)
    granted_lab_ids: frozenset[int] = field(default_factory=frozenset)  # explicit grants to look at a lab

    @property
    def is_system(self) -> bool:
        return self.ref.kind == "system"

    @property
    def is_person(self) -> bool:
        return self.ref.kind == "user"

    @property
    def sees_facility(self) -> bool:
        """Whether this actor may look at the whole facility (staff, InfoSec, auditors, the system itself)."""
        return self.is_research_computing or self.is_infosec or self.is_auditor or self.is_system

    @property
    def visible_lab_ids(self) -> frozenset[int]:
        """Labs whose every job and agent this actor may see."""
        return self.managed_lab_ids | self.granted_lab_ids


SYSTEM_ACTOR = Actor(ref=SYSTEM)

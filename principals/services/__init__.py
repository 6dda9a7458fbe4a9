"""Verbs of `principals`, called through this module: `principal_services.issue_token(actor=…, …)`."""

from principals.services.agents import (
    approve_agent,
    expiry_problem,
    name_problem,
    register_agent,
    renew_agent,
    resume_agent,
    retire_agent,
    suspend_agent,
)
from principals.services.associations import AssociationChanges, ToldAssociation, refresh_associations
from principals.services.directory import (
    Directory,
    add_lab_member,
    add_person,
    ensure_cluster,
    ensure_lab,
    require_cluster_name,
    set_low_risk_rule,
    set_person_active,
)
from principals.services.holds import lift_hold, lift_holds, place_hold
from principals.services.identities import (
    forget_identities,
    person_behind,
    person_named,
    record_second_factor,
    remove_second_factor,
    settle_roles,
)
from principals.services.logins import LOGIN_LIFE
from principals.services.munge import login_by_munge, make_nonce
from principals.services.notices import notify
from principals.services.pairing import settle as settle_sessions
from principals.services.rotation import rotate_agent_token
from principals.services.sessions import UNREGISTERED, DeclaredSession, RecordedSession, record_sessions
from principals.services.telling import subscribers
from principals.services.tokens import (
    IssuedToken,
    create_service_account,
    end_own_token,
    issue_agent_token,
    issue_service_token,
    longest_life_days,
    revoke_agent_token,
    revoke_service_token,
)

__all__ = [
    "LOGIN_LIFE",
    "UNREGISTERED",
    "AssociationChanges",
    "DeclaredSession",
    "Directory",
    "IssuedToken",
    "RecordedSession",
    "ToldAssociation",
    "add_lab_member",
    "add_person",
    "approve_agent",
    "create_service_account",
    "end_own_token",
    "ensure_cluster",
    "ensure_lab",
    "expiry_problem",
    "forget_identities",
    "issue_agent_token",
    "issue_service_token",
    "lift_hold",
    "lift_holds",
    "login_by_munge",
    "longest_life_days",
    "make_nonce",
    "name_problem",
    "notify",
    "person_behind",
    "person_named",
    "place_hold",
    "record_second_factor",
    "record_sessions",
    "refresh_associations",
    "register_agent",
    "remove_second_factor",
    "renew_agent",
    "require_cluster_name",
    "resume_agent",
    "retire_agent",
    "revoke_agent_token",
    "revoke_service_token",
    "rotate_agent_token",
    "set_low_risk_rule",
    "set_person_active",
    "settle_roles",
    "settle_sessions",
    "subscribers",
    "suspend_agent",
]

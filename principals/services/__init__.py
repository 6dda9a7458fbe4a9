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
from principals.services.handovers import agree_handover, ask_handover, close_handover
from principals.services.holds import lift_hold, lift_holds, place_hold
from principals.services.identities import (
    forget_identities,
    person_behind,
    person_named,
    record_second_factor,
    remove_second_factor,
    settle_roles,
)
from principals.services.lab_import import ImportedLine, import_labs
from principals.services.notices.telling import subscribers
from principals.services.notices.writing import notify
from principals.services.renewals import RolledOver, remind_of_renewals, roll_over_lab
from principals.services.rights import answer_appeal, file_hold_appeal, file_label_appeal, open_data
from principals.services.sessions.checkins import (
    Beginning,
    CheckedIn,
    OnNode,
    beat,
    check_in,
    check_out,
    end_silent,
    live_of,
    on_nodes,
    session_limit,
)
from principals.services.sessions.claims import claim_session, earlier_than, undo_claim, unregistered_of
from principals.services.sessions.pairing import settle as settle_sessions
from principals.services.sessions.recording import UNREGISTERED, DeclaredSession, RecordedSession, record_sessions
from principals.services.tokens.delegation import start_sub_agent
from principals.services.tokens.devices import (
    agent_asked_for,
    approve_device_login,
    begin_device_login,
    find_device_login,
    finish_device_login,
    refuse_device_login,
)
from principals.services.tokens.issuing import (
    IssuedToken,
    create_service_account,
    end_own_token,
    issue_agent_token,
    issue_service_token,
    longest_life_days,
    revoke_agent_token,
    revoke_service_token,
)
from principals.services.tokens.logins import LOGIN_LIFE
from principals.services.tokens.munge import login_by_munge, make_nonce
from principals.services.tokens.rotation import rotate_agent_token

__all__ = [
    "LOGIN_LIFE",
    "UNREGISTERED",
    "AssociationChanges",
    "Beginning",
    "CheckedIn",
    "DeclaredSession",
    "Directory",
    "ImportedLine",
    "IssuedToken",
    "OnNode",
    "RecordedSession",
    "RolledOver",
    "ToldAssociation",
    "add_lab_member",
    "add_person",
    "agent_asked_for",
    "agree_handover",
    "answer_appeal",
    "approve_agent",
    "approve_device_login",
    "ask_handover",
    "beat",
    "begin_device_login",
    "check_in",
    "check_out",
    "claim_session",
    "close_handover",
    "create_service_account",
    "earlier_than",
    "end_own_token",
    "end_silent",
    "ensure_cluster",
    "ensure_lab",
    "expiry_problem",
    "file_hold_appeal",
    "file_label_appeal",
    "find_device_login",
    "finish_device_login",
    "forget_identities",
    "import_labs",
    "issue_agent_token",
    "issue_service_token",
    "lift_hold",
    "lift_holds",
    "live_of",
    "login_by_munge",
    "longest_life_days",
    "make_nonce",
    "name_problem",
    "notify",
    "on_nodes",
    "open_data",
    "person_behind",
    "person_named",
    "place_hold",
    "record_second_factor",
    "record_sessions",
    "refresh_associations",
    "refuse_device_login",
    "register_agent",
    "remind_of_renewals",
    "remove_second_factor",
    "renew_agent",
    "require_cluster_name",
    "resume_agent",
    "retire_agent",
    "revoke_agent_token",
    "revoke_service_token",
    "roll_over_lab",
    "rotate_agent_token",
    "session_limit",
    "set_low_risk_rule",
    "set_person_active",
    "settle_roles",
    "settle_sessions",
    "start_sub_agent",
    "subscribers",
    "suspend_agent",
    "undo_claim",
    "unregistered_of",
]

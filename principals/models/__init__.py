"""Rows of `principals`: people, labs, clusters and their accounts, agents, sessions, tokens, holds."""

from principals.models.agents import Agent, AgentApproval, AgentSession, SessionDeclaration
from principals.models.checkins import ClaimedSession, SessionCheckIn, SessionClaim
from principals.models.clusters import Association, Cluster, ClusterUser, SlurmAccount
from principals.models.holds import Hold, Place
from principals.models.kill_switches import KillSwitch
from principals.models.notices import Notice, NoticeMail, NoticePreference
from principals.models.people import Lab, LabMembership, SignInIdentity, User
from principals.models.registrations import AgentHandover, RenewalReminder
from principals.models.rights import Appeal, DataAccess
from principals.models.tokens import AgentToken, ServiceAccount, ServiceToken

__all__ = [
    "Agent",
    "AgentApproval",
    "AgentHandover",
    "AgentSession",
    "AgentToken",
    "Appeal",
    "Association",
    "ClaimedSession",
    "Cluster",
    "ClusterUser",
    "DataAccess",
    "Hold",
    "KillSwitch",
    "Lab",
    "LabMembership",
    "Notice",
    "NoticeMail",
    "NoticePreference",
    "Place",
    "RenewalReminder",
    "ServiceAccount",
    "ServiceToken",
    "SessionCheckIn",
    "SessionClaim",
    "SessionDeclaration",
    "SignInIdentity",
    "SlurmAccount",
    "User",
]

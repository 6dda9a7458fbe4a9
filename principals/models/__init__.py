"""Rows of `principals`: people, labs, clusters and their accounts, agents, sessions, tokens, holds."""

from principals.models.agents import Agent, AgentApproval, AgentSession, SessionDeclaration
from principals.models.clusters import Association, Cluster, ClusterUser, SlurmAccount
from principals.models.device_logins import DeviceLogin
from principals.models.holds import Hold, Place
from principals.models.kill_switches import KillSwitch
from principals.models.people import Lab, LabMembership, SignInIdentity, User
from principals.models.tokens import AgentToken, ServiceAccount, ServiceToken

__all__ = [
    "Agent",
    "AgentApproval",
    "AgentSession",
    "AgentToken",
    "Association",
    "Cluster",
    "ClusterUser",
    "DeviceLogin",
    "Hold",
    "KillSwitch",
    "Lab",
    "LabMembership",
    "Place",
    "ServiceAccount",
    "ServiceToken",
    "SessionDeclaration",
    "SignInIdentity",
    "SlurmAccount",
    "User",
]

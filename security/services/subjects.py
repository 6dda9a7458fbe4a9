"""Whom a finding is about: the login name, the registered agent, the session and the lab, looked up once a batch."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from portal.core.errors import Invalid
from principals.models import Agent, AgentSession, Cluster, LabMembership
from principals.services.directory import Directory
from security.services.reports import CleanFinding, ReportedFinding


@dataclass(frozen=True, slots=True)
class Subject:
    """Row ids of whom a finding is about, and how that is known."""

    cluster_user_id: int | None = None
    agent_id: int | None = None
    session_id: int | None = None
    lab_id: int | None = None
    method: str = ""


class Subjects:
    """Finds the subjects of a batch of findings in a fixed number of queries (and one for each new login name)."""

    def __init__(self, cluster: Cluster, findings: Iterable[CleanFinding]) -> None:
        said = [finding.said for finding in findings]
        self._logins = self._cluster_users(cluster, {each.login for each in said} - {""})
        names = {each.agent for each in said} - {""}
        self._agents = {agent.name: agent for agent in Agent.objects.filter(name__in=names)}
        self._sessions = self._sessions_of(cluster, said)
        self._labs = self._only_labs(self._logins.values())

    @staticmethod
    def _cluster_users(cluster: Cluster, logins: set[str]) -> dict[str, int]:
        directory = Directory(cluster) if logins else None
        return {login: directory.user_id(login) for login in sorted(logins)} if directory else {}

    def _sessions_of(self, cluster: Cluster, said: list[ReportedFinding]) -> dict[tuple[int, str], list[AgentSession]]:
        found: dict[tuple[int, str], list[AgentSession]] = defaultdict(list)
        if not self._logins:
            return found
        first, last = min(each.occurred for each in said), max(each.occurred for each in said)
        running = AgentSession.objects.filter(
            Q(ended=None) | Q(ended__gte=first), cluster=cluster, kind=AgentSession.Kind.AGENT, started__lte=last,
            cluster_user_id__in=self._logins.values(), host__in={each.host for each in said},
        ).select_related("agent")  # fmt: skip
        for session in running:
            found[session.cluster_user_id, session.host].append(session)
        return found

    @staticmethod
    def _only_labs(cluster_user_ids: Iterable[int]) -> dict[int, int]:
        """Return the lab of people who are in one lab only: a person of several is nobody's to show."""
        labs: dict[int, set[int]] = defaultdict(set)
        places = LabMembership.objects.filter(user__cluster_users__in=list(cluster_user_ids))
        for cluster_user_id, lab_id in places.values_list("user__cluster_users", "lab_id"):
            labs[cluster_user_id].add(lab_id)
        return {cluster_user_id: min(found) for cluster_user_id, found in labs.items() if len(found) == 1}

    def of(self, finding: CleanFinding) -> Subject:
        """Return whom a finding is about. Errors: `Invalid` where it names an agent that is not registered."""
        said = finding.said
        if said.agent and said.agent not in self._agents:
            raise Invalid(
                "No agent of that name is registered.", code="agent_unknown", remedy="Send the login name instead."
            )
        user_id = self._logins.get(said.login)
        session = self._session_at(user_id, finding)
        agent = self._agents.get(said.agent) or (session.agent if session else None)
        method = said.method or ("named by its reporter" if said.agent else "seen in its session" if session else "")
        lab_id = agent.lab_id if agent else self._labs.get(user_id) if user_id else None
        return Subject(user_id, agent.pk if agent else None, session.pk if session else None, lab_id, method)

    def _session_at(self, user_id: int | None, finding: CleanFinding) -> AgentSession | None:
        """Return the one session that ran there and then; of several none, for that would be a guess."""
        if user_id is None:
            return None
        at = finding.said.occurred
        running = [
            session
            for session in self._sessions.get((user_id, finding.said.host), [])
            if session.started <= at and (session.ended is None or at <= session.ended)
        ]
        return running[0] if len(running) == 1 else None

"""A small facility with known numbers: nine people in three labs, agents, people and what is not attributed."""

from dataclasses import dataclass

from principals.models import AgentSession, Cluster, ClusterUser, Lab
from telemetry import services
from tests import factories
from tests.telemetry.job_rows import DAY_0, make_job

HOUR = 3600


@dataclass
class Facility:
    cluster: Cluster
    users: list[ClusterUser]
    big: Lab
    small: Lab
    mixed: Lab


def make_facility() -> Facility:
    """Six people in `big` (two with agents), two in `small` (one with agents), one person in `mixed` of another kind.

    Wednesday 1 July 2026. Submissions: agents 12, people 8, not attributed 4. One agent user also works by hand.
    """
    cluster = factories.make_cluster("aster")
    big, small, mixed = factories.make_lab("big"), factories.make_lab("small"), factories.make_lab("mixed")
    users = [factories.make_cluster_user(cluster, factories.make_user()) for _ in range(9)]
    agent = {"actor": "agent", "harness": "claude-code"}
    noon, night = DAY_0 + 16 * HOUR, DAY_0 + 6 * HOUR  # 12:00 and 02:00 in New York
    for n in range(8):
        state = "CANCELLED" if n < 2 else "COMPLETED"
        make_job(users[0], big, submit=night, start=night + 10, end=night + 40, cpus=4, gpus=1, state=state,
                 partition="test" if n < 4 else "shared", **agent)  # fmt: skip
    for _ in range(2):
        make_job(users[1], big, submit=noon, start=noon, end=noon + 200, actor="agent", harness="codex")
        make_job(users[6], small, submit=noon, start=noon, end=noon + 2 * HOUR, cpus=8, gpus=2, **agent)
    make_job(users[0], big, submit=noon, start=noon + 60, end=noon + HOUR, cpus=2, actor="human")
    for user in users[2:6]:
        make_job(user, big, submit=noon, start=noon + 120, end=noon + 3 * HOUR, actor="human")
    for _ in range(3):
        make_job(users[7], small, submit=noon, start=noon, end=noon + HOUR, actor="human")
    for _ in range(4):
        make_job(users[8], mixed, submit=noon, start=noon, end=noon + 30 * HOUR)
    services.catch_up(cluster=cluster)
    return Facility(cluster, users, big, small, mixed)


def make_session(user: ClusterUser, kind: str, *, started: int, ended: int | None = None) -> AgentSession:
    """A declared session."""
    return AgentSession.objects.create(
        cluster=user.cluster, cluster_user=user, host="login1", kind=kind, started=started, ended=ended,
        harness="codex" if kind == "agent" else "",
    )  # fmt: skip

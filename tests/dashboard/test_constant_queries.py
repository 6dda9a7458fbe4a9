"""The pages that everybody opens cost as many queries for a crowd as for a few."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from principals.models import AgentSession, LabMembership
from telemetry import services
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
_numbers = count(1)


def add_people(cast: Cast, number: int) -> None:
    """People with an agent, a session, a lab and a partition of their own, and three jobs each."""
    for n in (next(_numbers) for _ in range(number)):
        person, lab = factories.make_user(f"person-{n}"), factories.make_lab(f"lab-{n}")
        LabMembership.objects.create(lab=cast.lab, user=person)
        agent = factories.make_agent(cast.lab, person, f"okafor-{n}", harness=("codex", "aider", "goose")[n % 3])
        user = factories.make_cluster_user(cast.cluster, person)
        session = AgentSession.objects.create(
            cluster=cast.cluster, cluster_user=user, host=f"login{n}", kind="agent", harness=agent.harness,
            started=DAY_0, agent=agent,
        )  # fmt: skip
        for actor in ("agent", "human", "unknown"):
            named = {"harness": agent.harness, "session": session, "agent": agent}
            given: dict[str, Any] = named if actor == "agent" else {}
            start = DAY_0 + n * 3600
            make_job(
                user, lab, submit=start, start=start, end=start + 60, gpus=1, partition=f"p{n}", actor=actor, **given
            )
    for n in range(number):  # and one agent does most of it
        start = DAY_0 + n * 7200
        of_one = cast.agent.sessions.first() or AgentSession.objects.create(
            cluster=cast.cluster, cluster_user=cast.cluster.cluster_users.get(user=cast.colleague), host="login1",
            kind="agent", harness=cast.agent.harness, started=DAY_0, agent=cast.agent,
        )  # fmt: skip
        make_job(
            of_one.cluster_user, cast.lab, submit=start, start=start, end=start + 60, actor="agent", session=of_one,
            agent=cast.agent,
        )  # fmt: skip
    services.catch_up(cluster=cast.cluster)


PAGES: dict[str, Callable[[Cast], str]] = {
    "overview": lambda cast: "/overview/?period=2026-07",
    "agents": lambda cast: "/agents/",
    "one agent": lambda cast: f"/agents/{cast.agent.name}/",
    "my lab": lambda cast: "/my-lab/",
    "jobs": lambda cast: "/jobs/?from=2026-07-01&to=2026-07-31",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_crowd_costs_as_many_queries_as_a_few(cast: Cast, name: str) -> None:
    client, path = sign_in(cast.pi if name == "my lab" else cast.staff), PAGES[name](cast)

    def asked() -> int:
        cache.clear()
        assert client.get(path).status_code == 200
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            client.get(path)
        return len(queries)

    add_people(cast, 6)
    few = asked()
    add_people(cast, 30)
    assert asked() == few

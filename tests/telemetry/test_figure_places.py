"""Where agents work, with the bounds of what nobody knows, and what login nodes alone would say."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from principals.actors import SYSTEM_ACTOR
from principals.models import AgentSession, Cluster, ClusterUser, Lab
from telemetry import services
from telemetry.figures import FIGURES, Measured, Readings, drill_query, measure
from telemetry.figures.places import FEW, NO_BOUND
from telemetry.figures.places import FIGURES as OURS
from telemetry.models import ActivityDay, GatewayDay, Job, SshDay
from telemetry.selectors import JobFilter, Period, Scope
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
# Place: agent users there alone, commands of each, jobs of each.
PLANTED = {"login": (6, 100, 4), "job": (5, 60, 8), "ssh": (5, 20, 2), "gateway": (5, 0, 3), "agent_host": (5, 0, 0)}


def figure(key: str, cluster: Cluster) -> Measured:
    found = measure(key, Readings(Scope(SYSTEM_ACTOR, cluster, JULY)))
    assert found is not None
    return found


def rows(found: Measured) -> dict[str, tuple[Any, ...]]:
    return {row.key: row.values for row in found.rows}


def add_agent(user: ClusterUser, lab: Lab, place: str, commands: int, jobs: int) -> AgentSession:
    session = AgentSession.objects.create(
        cluster=user.cluster, cluster_user=user, host=f"host-of-{place}", harness="codex", place=place, started=NOON,
        ended=NOON + timedelta(hours=2), process=f"boot/{user.pk}-{place}",
    )  # fmt: skip
    if commands:
        day(user.cluster, place, "agent", commands, session=session, cluster_user=user, harness="codex")
    if jobs:
        make_job(user, lab, submit=DAY_0 + 43_200, actor="agent", session_id=session.pk, array_tasks=jobs)
    return session


def day(cluster: Cluster, place: str, driver: str, commands: int, **of: Any) -> None:
    ActivityDay.objects.create(
        cluster=cluster, day=NOON.date(), host=f"host-of-{place}", place=place, driver=driver, minutes=5,
        counts={"commands": commands}, **of,
    )  # fmt: skip


def plant(planted: Mapping[str, tuple[int, int, int]]) -> tuple[Cluster, Lab]:
    cluster, lab = factories.make_cluster("aster"), factories.make_lab("okafor")
    for place, (people, commands, jobs) in planted.items():
        for _ in range(people):
            user = factories.make_cluster_user(cluster, factories.make_user())
            add_agent(user, lab, place, commands, jobs)
    return cluster, lab


@pytest.fixture
def cluster(db: None) -> Cluster:
    cluster, lab = plant(PLANTED)
    for number in range(10):
        user = factories.make_cluster_user(cluster, factories.make_user())
        make_job(user, lab, submit=DAY_0 + 43_200, actor="human" if number < 8 else "unknown", array_tasks=5)
    day(cluster, "login", "human", 500)
    day(cluster, "login", "unknown", 100)
    day(cluster, "job", "unknown", 50)
    GatewayDay.objects.create(
        cluster=cluster, day=NOON.date(), host="ood", gateway="ondemand", driver="agent", requests=70, submissions=15,
        transfers=0,
    )  # fmt: skip
    services.catch_up(cluster=cluster)
    return cluster


def test_people_and_sessions_are_counted_by_place(cluster: Cluster) -> None:
    found = figure("where-agents-work", cluster)
    assert rows(found) == {
        "login": (6, 6 / 26, 6, 6 / 26), **{place: (5, 5 / 26, 5, 5 / 26) for place in PLANTED if place != "login"}
    }  # fmt: skip
    assert found.value == pytest.approx(20 / 26) and found.note == ""


@pytest.mark.parametrize(("pairs", "share"), [(4, None), (6, 6)])
def test_programs_over_ssh_of_unknown_kind_are_its_unknown_share(
    cluster: Cluster, pairs: int, share: int | None
) -> None:
    given = {"connections": 9, "untold": 0, "keys": 1, "clients": 1, "run": uuid4(), "host": "login1"}
    SshDay.objects.create(cluster=cluster, day=date(2026, 7, 3), pairs=pairs, **given)
    SshDay.objects.create(cluster=cluster, day=date(2026, 8, 3), pairs=100, **given)
    found = figure("where-agents-work", cluster)
    sessions = sum(each[2] for each in rows(found).values() if each[2])
    assert found.unknown_share == (share and pytest.approx(share / (sessions + share)))
    assert ("6 pairs of a key and a client" in found.note) is bool(share)


def test_commands_have_bounds_by_what_nobody_drives_there_and_elsewhere(cluster: Cluster) -> None:
    found = figure("where-agents-run-commands", cluster)
    # Agents' 600 + 300 + 100 = 1,000; of nobody 100 on login nodes and 50 in jobs.
    assert rows(found)["login"] == (600, 0.6, 600 / 1050, 700 / 1100, 100 / 1200)
    assert rows(found)["job"] == (300, 0.3, 300 / 1100, 350 / 1050, 50 / 350)
    assert rows(found)["gateway"] == rows(found)["agent_host"] == (None,) * 5
    assert (found.value, found.unknown_share) == (0.4, 150 / 1650)
    assert "Gateways count requests" in found.note


def test_submissions_have_bounds_by_what_is_not_attributed(cluster: Cluster) -> None:
    found = figure("where-agents-submit", cluster)
    # 24 + 40 + 10 + 15 = 89 of agents, 10 of nobody.
    assert rows(found)["job"] == (40, 40 / 89, 40 / 99, 50 / 99, 5)
    assert rows(found)["agent_host"] == (0, 0, 0, 10 / 99, 0)
    assert found.value == 65 / 89
    query = drill_query(FIGURES["where-agents-submit"], Scope(SYSTEM_ACTOR, cluster, JULY), found.rows[1])
    assert query.endswith("actor=agent&place=job")
    asked = JobFilter.read({"cluster": "aster", "actor": "agent", "place": "job"})
    assert asked.apply(Job.objects.all(), SYSTEM_ACTOR).count() == 5  # of eight tasks each


def test_a_job_in_no_known_session_has_no_place(cluster: Cluster) -> None:
    Job.objects.filter(session__place="gateway").update(session=None)
    found = figure("where-agents-submit", cluster)
    assert rows(found)["gateway"][0] == 0 and "in no known session" in found.note
    assert rows(found)["ssh"] == (10, 10 / 89, 10 / 99, 35 / 99, 5)


def test_submissions_of_no_place_by_few_are_told_by_no_bound_and_no_sum(cluster: Cluster) -> None:
    few = list(Job.objects.filter(session__place="ssh").values_list("pk", flat=True)[:3])
    Job.objects.filter(pk__in=few).update(session=None)  # six tasks of three people; four of two are left there
    found = figure("where-agents-submit", cluster)
    told = rows(found)
    assert found.value is None and NO_BOUND in found.note and FEW in found.note
    assert "in no known session" not in found.note
    assert [key for key, values in told.items() if values[0] is None] == ["ssh"]
    assert all(values[3] is None for values in told.values())


def test_a_place_goes_with_the_few_of_no_place(cluster: Cluster) -> None:
    user, lab = factories.make_cluster_user(cluster, factories.make_user()), Lab.objects.get()
    make_job(user, lab, submit=DAY_0 + 43_200, actor="agent", array_tasks=7)
    services.catch_up(cluster=cluster)
    told = rows(figure("where-agents-submit", cluster))
    empty = [key for key, values in told.items() if values[0] is None]
    assert len(empty) == 1 and empty != ["login"]  # 7 and what that one has cannot be told apart
    assert {values[3] for values in told.values()} == {None}


def test_login_nodes_alone_show_a_part_of_each_headline(cluster: Cluster) -> None:
    found = figure("login-node-bias", cluster)
    submitted = 89 + 50
    assert rows(found) == {
        # Those on the agents' host submitted nothing, and are among no people with jobs.
        "people": (6 / 31, 21 / 31, pytest.approx(15 / 31)),
        "submissions": (24 / submitted, 89 / submitted, pytest.approx(65 / submitted)),
        "commands": (600 / 1200, 1000 / 1650, pytest.approx(1000 / 1650 - 0.5)),
    }
    assert found.value == pytest.approx(65 / submitted)


def test_the_bias_is_nothing_where_nobody_works_elsewhere(db: None) -> None:
    cluster, _ = plant({"login": (6, 10, 1)})
    services.catch_up(cluster=cluster)
    found = figure("login-node-bias", cluster)
    assert [row[2] for row in rows(found).values()] == [0, 0, 0]
    assert "Not watched: In a job; Over SSH without a terminal; Behind a gateway; Host for agents." in found.note
    labels = [row.label for row in figure("where-agents-work", cluster).rows]
    assert labels[:2] == ["Login node", "In a job: not watched"]


@pytest.mark.parametrize(
    ("planted", "shown"),
    [
        ({"login": (6, 10, 1), "ssh": (20, 10, 1), "job": (2, 10, 1)}, ["login"]),
        ({"login": (6, 10, 1), "ssh": (20, 10, 1), "job": (2, 10, 1), "agent_host": (4, 10, 1)}, ["login", "ssh"]),
        ({"login": (6, 10, 1), "job": (2, 10, 1)}, []),
        ({"login": (2, 10, 1), "ssh": (20, 10, 1)}, []),
    ],
)
def test_rows_of_few_are_empty_and_subtraction_tells_none(
    db: None, planted: dict[str, tuple[int, int, int]], shown: list[str]
) -> None:
    cluster, _ = plant(planted)
    services.catch_up(cluster=cluster)
    for key in ("where-agents-work", "where-agents-run-commands", "where-agents-submit"):
        found = figure(key, cluster)
        assert [row.key for row in found.rows if row.values[0]] == shown, key
        assert FEW in found.note
        assert (found.value is None) == ("login" not in shown)
    if not shown:
        assert [row[2] for row in rows(figure("login-node-bias", cluster)).values()] == [None] * 3


def test_few_who_also_work_on_login_nodes_are_told_by_no_difference(db: None) -> None:
    cluster, lab = plant({"login": (6, 10, 1)})
    for user in ClusterUser.objects.all()[:2]:
        add_agent(user, lab, "ssh", 10, 3)
    services.catch_up(cluster=cluster)
    bias = rows(figure("login-node-bias", cluster))
    assert bias["submissions"] == bias["commands"] == (None, None, None)


def test_a_time_of_which_nothing_is_known_says_so(db: None) -> None:
    cluster = factories.make_cluster("aster")
    for each in OURS:
        assert figure(each.key, cluster).value is None


def test_the_page_of_login_nodes_and_an_agents_say_where(cast: Cast) -> None:
    user = ClusterUser.objects.get(login="colleague")
    AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=user, agent=cast.agent, host="c042", harness="claude-code", place="job",
        raw_job_id=4711, started=datetime.now(UTC) - timedelta(hours=1), process="boot/1-1",
    )  # fmt: skip
    client = sign_in(cast.staff)
    page = client.get("/login-nodes/")
    assert page.status_code == 200
    text = page.content.decode()
    for place in AgentSession.Place:
        assert place.label in text
    assert "Where agents work" in text and text.count("Not watched: no collector") == 4
    agent = client.get(f"/agents/{cast.agent.name}/").content.decode()
    assert "c042" in agent and "In a job 4711" in agent

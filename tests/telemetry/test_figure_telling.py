"""What harnesses tell comes to two figures: what an agent user costs, and what people decline."""

from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import median
from typing import Any

import pytest

from principals.actors import SYSTEM_ACTOR
from principals.models import AgentSession, Cluster, Lab
from telemetry.figures import FIGURES, Measured, Readings, measure
from telemetry.figures.commands import HIDDEN
from telemetry.figures.telling import NOT_TOLD
from telemetry.models import HarnessDay
from telemetry.selectors import Period, Scope
from tests import factories

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
NOON = datetime(2026, 7, 8, 12, tzinfo=UTC)


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster()


@pytest.fixture
def lab(db: None) -> Lab:
    return factories.make_lab()


def tell(cluster: Cluster, lab: Lab, *days: Mapping[str, int], harness: str = "claude-code", at: Any = NOON) -> Any:
    """Let the agent of somebody new tell, a session for each."""
    user = factories.make_user()
    factories.make_cluster_user(cluster, user)
    agent = factories.make_agent(lab, user, harness=harness)
    for number, counts in enumerate(days):
        HarnessDay.objects.create(
            agent=agent, day=at.date(), session_key=f"s{number}", harness=harness, first=at, last=at,
            counts=dict(counts), stale=False,
        )  # fmt: skip
    return user


def figure(key: str, cluster: Cluster) -> Measured:
    found = measure(key, Readings(Scope(actor=SYSTEM_ACTOR, cluster=cluster, period=JULY)))
    assert found is not None
    return found


def rows(key: str, cluster: Cluster) -> dict[str, tuple[Any, ...]]:
    return {row.key: row.values for row in figure(key, cluster).rows}


def test_cost_is_the_median_of_people(cluster: Cluster, lab: Lab):
    for dollars in (1, 2, 4, 8, 16):
        tell(cluster, lab, {"cost": dollars * 500_000}, {"cost": dollars * 500_000})
    found = figure("harness-cost", cluster)
    assert found.value == 4.0
    assert rows("harness-cost", cluster)["agent"] == (4.0, 5)
    assert rows("harness-cost", cluster)["harness-claude-code"] == (4.0, 5)


def test_declined_is_of_what_people_were_asked_for(cluster: Cluster, lab: Lab):
    declined = (0, 1, 2, 3, 10)
    for number in declined:
        tell(cluster, lab, {"accepted:Bash": 10, "rejected:Bash": number, "automatic:Read": 1000})
    found = rows("decisions-declined", cluster)["agent"]
    assert found[0] == pytest.approx(sum(declined) / (50 + sum(declined)))
    assert found[1] == pytest.approx(median(number / (10 + number) for number in declined))
    assert found[-1] == 5


def test_few_people_are_left_empty(cluster: Cluster, lab: Lab):
    for _ in range(5):
        tell(cluster, lab, {"cost": 1_000_000, "accepted:Bash": 1})
    for _ in range(4):
        tell(cluster, lab, {"cost": 9_000_000, "rejected:shell": 1}, harness="codex")
    for key in ("harness-cost", "decisions-declined"):
        assert set(rows(key, cluster)["harness-codex"]) == {None}
        assert rows(key, cluster)["agent"][-1] == 9
        assert figure(key, cluster).note == HIDDEN


def test_four_people_make_no_figure(cluster: Cluster, lab: Lab):
    for _ in range(4):
        tell(cluster, lab, {"cost": 1_000_000, "rejected:Bash": 1})
    for key in ("harness-cost", "decisions-declined"):
        assert figure(key, cluster).value is None
        assert {value for values in rows(key, cluster).values() for value in values} == {None}


def test_where_nobody_told_it_is_not_measured(cluster: Cluster, lab: Lab):
    tell(cluster, lab, {"cost": 1}, at=datetime(2026, 6, 30, tzinfo=UTC))
    for key in ("harness-cost", "decisions-declined"):
        found = figure(key, cluster)
        assert (found.value, found.rows, found.note) == (None, (), NOT_TOLD)


def test_who_told_nothing_is_the_unknown_share(cluster: Cluster, lab: Lab):
    told = [tell(cluster, lab, {"cost": 1_000_000}) for _ in range(6)]
    silent = [factories.make_user() for _ in range(2)]
    for user in (*told[:3], *silent):
        AgentSession.objects.create(
            cluster=cluster, cluster_user=factories.make_cluster_user(cluster, user), host="login1", kind="agent",
            harness="claude-code", started=NOON, ended=NOON,
        )  # fmt: skip
    assert figure("harness-cost", cluster).unknown_share == pytest.approx(2 / 8)


def test_who_has_several_login_names_and_told_nothing_is_one(cluster: Cluster, lab: Lab):
    tell(cluster, lab, {"cost": 1_000_000})
    user = factories.make_user()
    for name in ("ada", "ada2"):
        login = cluster.cluster_users.create(login=name, user=user)
        AgentSession.objects.create(
            cluster=cluster, cluster_user=login, host="login1", kind="agent", harness="codex", started=NOON, ended=NOON
        )
    assert figure("harness-cost", cluster).unknown_share == pytest.approx(1 / 2)


def test_people_of_another_cluster_are_not_counted(cluster: Cluster, lab: Lab):
    other = factories.make_cluster("boreal")
    for _ in range(5):
        tell(other, lab, {"cost": 1_000_000})
    assert figure("harness-cost", cluster).value is None
    assert figure("harness-cost", other).value == 1.0


def test_both_are_figures_of_the_report():
    assert {"harness-cost", "decisions-declined"} <= set(FIGURES)

"""A report holds no number that fewer than five people made, nor one that it could be had from."""

from typing import Any

import pytest

from portal.reports import contents
from portal.reports.few import NOTE, PARTED
from portal.reports.figures import FIGURES
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.engine.cells import left_empty
from telemetry.models import Actor, SchedulerCalls
from telemetry.selectors import Period, Scope
from tests import factories
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db
JULY = Period.month(2026, 7)
DAY_S = 86_400
# These count people of their own, and leave out what is of few: commands, sessions, memory.
OF_THEMSELVES = {
    "oom-unchanged", "command-rate", "command-classes",
    "file-tools", "tree-walks", "recursive-searches", "query-commands", "loop-time", "loops-closed", "polling-loops",
    "destructive-commands", "external-fetches", "extensions-run", "session-age", "harness-cost", "decisions-declined",
    "where-agents-work", "where-agents-run-commands", "gpu-would-fit",
}  # fmt: skip


def plant(days: int = 1, **people: int) -> Cluster:
    """Let so many people of each kind submit a job with a GPU on each of some days."""
    cluster, lab = factories.make_cluster("aster"), factories.make_lab("big")
    for actor, number in people.items():
        for _ in range(number):
            user = factories.make_cluster_user(cluster, factories.make_user())
            for day in range(days):
                start = DAY_0 + day * DAY_S + 50_000
                harness = "codex" if actor == "agent" else ""
                make_job(user, lab, submit=start, start=start, end=start + 60, gpus=1, actor=actor, harness=harness)
    services.catch_up(cluster=cluster)
    return cluster


def drafted(cluster: Cluster) -> dict[str, dict[str, Any]]:
    content = contents.build(Scope(SYSTEM_ACTOR, cluster, JULY)).as_json()
    return {figure["key"]: figure for section in content["sections"] for figure in section["figures"]}


def shown(figure: dict[str, Any]) -> list[str]:
    return [row["key"] for row in figure["rows"] if row["values"][0] is not None]


def test_few_agents_are_told_by_no_share_sum_or_row() -> None:
    found = drafted(plant(agent=3, human=9, unknown=20))
    for key in PARTED:
        if key.startswith("share-"):
            assert (found[key]["value"], shown(found[key])) == (None, ["unknown"]), key
            assert NOTE in found[key]["note"]
        assert "agent" not in shown(found[key]), key
    assert found["acceptance-labelled"]["value"] is found["login-node-bias"]["value"] is None
    assert shown(found["harnesses"]) == shown(found["attribution-methods"]) == []
    lab = dict(zip((one["key"] for one in found["labs"]["columns"]), found["labs"]["rows"][0]["values"], strict=True))
    assert (lab["submissions"], lab["agent_submissions"], lab["share"], lab["unknown_share"]) == (32, None, None, 0.625)
    assert found["total-submissions"]["value"] == 32


def test_where_others_are_few_agents_stay_and_no_difference_tells() -> None:
    found = drafted(plant(agent=6, human=7, unknown=2))
    for key in (
        "share-submissions-account",
        "share-submissions-job",
        "share-people-job",
        "cancelled",
        "runtime-median",
    ):
        assert shown(found[key]) == ["agent"], key
        assert found[key]["unknown_share"] is None
    assert found["share-submissions-job"]["value"] == 6 / 15
    assert found["where-agents-submit"]["unknown_share"] is None
    assert shown(found["harnesses"]) == ["codex"]


def test_queries_tell_no_submissions_that_shares_leave_empty() -> None:
    cluster = plant(agent=6, human=7, unknown=2)
    for user in cluster.cluster_users.all():
        SchedulerCalls.objects.create(cluster=cluster, cluster_user=user, day=JULY.first, calls=9)
    found = drafted(cluster)
    assert shown(found["queries-per-job"])[0] == "agent"
    assert not {"human", "unknown"} & {*shown(found["queries-per-job"])}
    assert {key.split("-")[0] for key in shown(found["queries-high-volume"])} == {"agent"}
    assert found["queries-per-job"]["unknown_share"] is None


def test_where_nobody_is_few_nothing_is_left_empty() -> None:
    found = drafted(plant(agent=5, human=5, unknown=5))
    assert all(NOTE not in figure["note"] for figure in found.values())
    assert shown(found["share-people-account"]) == list(Actor.values)


def test_people_without_a_gpu_do_not_stand_for_the_few_who_have_one() -> None:
    cluster, lab = plant(human=6, unknown=6, agent=2), factories.make_lab("other")
    for _ in range(9):
        user = factories.make_cluster_user(cluster, factories.make_user())
        make_job(user, lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60, actor="agent", harness="codex")
    services.catch_up(cluster=cluster)
    found = drafted(cluster)
    assert found["share-submissions-job"]["value"] == 11 / 23
    assert (found["share-GPU-hours-job"]["value"], shown(found["share-GPU-hours-job"])) == (None, ["human"])


def test_days_of_few_are_empty_and_one_more_where_the_sum_would_tell() -> None:
    cluster = plant(days=3, agent=6, human=6, unknown=6)
    user = factories.make_cluster_user(cluster, factories.make_user())
    late = DAY_0 + 9 * DAY_S
    make_job(user, factories.make_lab("other"), submit=late, start=late, end=late + 60, actor="human")
    services.catch_up(cluster=cluster)
    daily = drafted(cluster)["daily"]
    place = [column["key"] for column in daily["columns"]].index("human_submissions")
    empty = [row["key"] for row in daily["rows"] if row["values"][place] is None]
    assert len(empty) == 2 and "2026-07-10" in empty
    assert all(row["values"][place - 1] is not None for row in daily["rows"])
    assert NOTE in daily["note"]


def test_every_figure_that_parts_by_actor_is_known_here() -> None:
    cluster = plant(agent=5, human=5, unknown=5)
    left = []
    for key, figure in drafted(cluster).items():
        names = [row["key"] for row in figure["rows"]] + [column["key"] for column in figure["columns"]]
        parts = {name.split("-")[-1].split("_")[0] for name in names} & {*Actor.values}
        if parts and key not in PARTED and key not in OF_THEMSELVES:
            left.append(key)
    assert left == []
    assert not {*PARTED, *OF_THEMSELVES} - FIGURES.keys()


def test_of_a_line_whose_sum_is_known_no_cell_is_empty_alone() -> None:
    table = {"a": {1, 2}, "b": {3, 4, 5, 6, 7}, "c": {*range(8, 20)}, "d": set[int]()}
    assert left_empty(table, []) == {"a"}
    assert left_empty(table, [["a", "b", "c", "d"]]) == {"a", "b"}
    assert left_empty(table, [["a", "b", "c"]], last=lambda key: key == "b") == {"a", "c"}
    assert left_empty({"a": {1}, "b": {2}, "c": {*range(3, 9)}}, [["a", "b", "c"]]) == {"a", "b", "c"}
    assert left_empty({"b": {*range(9)}, "c": {*range(9)}}, [["b", "c"]]) == set()
    crossed = {("r", "x"): {1}, ("r", "y"): {*range(9)}, ("s", "x"): {*range(8)}, ("s", "y"): {*range(7)}}
    lines = [[("r", "x"), ("r", "y")], [("s", "x"), ("s", "y")], [("r", "x"), ("s", "x")], [("r", "y"), ("s", "y")]]
    assert left_empty(crossed, lines) == {*crossed}


def test_agents_of_a_lab_and_of_an_hour_are_not_told_where_they_are_few() -> None:
    cluster = plant(human=9, unknown=9, agent=6)
    user = cluster.cluster_users.filter(jobs__actor="agent").first()
    other = factories.make_lab("other")
    night = DAY_0 + 5 * DAY_S
    for one in cluster.cluster_users.exclude(jobs__actor="agent"):
        make_job(one, other, submit=night, start=night, end=night + 9, actor="human", partition="odd")
    make_job(user, other, submit=night, start=night, end=night + 9, actor="agent", harness="codex", partition="odd")
    services.catch_up(cluster=cluster)
    found = drafted(cluster)
    for key, row in (("labs", "other"), ("labs", "big"), ("partitions", "odd"), ("partitions", "shared")):
        place = [column["key"] for column in found[key]["columns"]].index("agent_submissions")
        values = next(each["values"] for each in found[key]["rows"] if each["key"] == row)
        assert values[place] is None, (key, row)  # of the larger one the difference to all agents' would tell
        assert values[place + 1] is not None
    hours = [column["key"] for column in found["hour-of-week"]["columns"]].index("agent")
    assert {row["values"][hours] for row in found["hour-of-week"]["rows"]} == {0, None}
    assert NOTE in found["labs"]["note"] and NOTE in found["hour-of-week"]["note"]


def test_jobs_that_few_people_make_by_hand_are_not_the_difference_of_two_definitions() -> None:
    cluster = plant(agent=8, human=9, unknown=9)
    users = cluster.cluster_users.filter(jobs__actor="agent")[:2]
    for user in users:
        make_job(user, factories.make_lab(f"lab{user.pk}"), submit=DAY_0, start=DAY_0, end=DAY_0 + 9, actor="human")
    services.catch_up(cluster=cluster)
    found = drafted(cluster)
    assert "agent" in shown(found["share-submissions-job"])
    assert found["share-submissions-account"]["value"] is None
    assert not {"agent", "human"} & {*shown(found["share-submissions-account"])}


def test_ends_that_few_people_met_are_not_told() -> None:
    cluster = plant(agent=8, human=9, unknown=9)
    user = cluster.cluster_users.filter(jobs__actor="agent").first()
    make_job(user, factories.make_lab("x"), submit=DAY_0, start=DAY_0, end=DAY_0 + 9, state="CANCELLED", actor="agent")
    services.catch_up(cluster=cluster)
    found = drafted(cluster)
    assert found["cancelled"]["value"] is None and "agent" not in shown(found["cancelled"])
    assert shown(found["resubmitted"]) == []
    assert found["failed"]["value"] == 0

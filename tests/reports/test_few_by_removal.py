"""The attack on what reports withhold: take each person out in turn, and see which numbers change.

A sum that changes with one to four people is theirs. So is what is missing of a column whose whole is known.
"""

from collections import Counter
from typing import Any

import pytest
from django.db import transaction

from portal.reports import contents
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, ClusterUser
from telemetry import services
from telemetry.engine import cells as engine_cells
from telemetry.models import Job
from telemetry.selectors import Period, Scope
from tests import factories
from tests.reports.planted import cells
from tests.telemetry.gpu_rows import reading
from tests.telemetry.job_rows import DAY_0, make_job, mark

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
WEEK = Period.week(Period.month(2026, 7).first)
HOUR, DAY_S = 3600, 86_400
FEW = range(1, 5)
SUMS = {"submissions", "jobs", "core-hours", "GPU-hours", "people"}
# Counts of what people's accounting is not behind, or of different kinds of keys.
NOT_OF_PEOPLE = {"records", "set-aside"}
Found = dict[tuple[str, str, str], float | None]


def plant() -> Cluster:
    """Thirty people in three labs and partitions, of whom some do what few do: a place, an hour, an end, a GPU."""
    cluster = factories.make_cluster("aster")
    labs = [factories.make_lab(name) for name in ("big", "mid", "odd")]
    kinds = [("agent", "codex")] * 8 + [("agent", "cursor")] * 6 + [("human", "")] * 10 + [("unknown", "")] * 6
    for number, (actor, harness) in enumerate(kinds):
        user = factories.make_cluster_user(cluster, factories.make_user())
        for turn in range(3):
            at = DAY_0 + turn * DAY_S + (9 + 3 * (number % 2)) * HOUR
            job = {
                "partition": ("shared", "test", "bigmem")[turn if number % 3 == 0 else 0],
                "state": ("COMPLETED", "COMPLETED", ("CANCELLED", "FAILED", "TIMEOUT")[number % 3])[turn],
                "actor": actor, "harness": harness, "gpus": int(number % 5 == turn), "raw_id": 100 * number + turn,
                "submit_line": "sbatch a.sh", "exit_code": 1, "exit_signal": 0,
            }  # fmt: skip
            lab = labs[number % 2 if turn < 2 or number % 7 else 2]
            make_job(user, lab, submit=at, start=at + 60, end=at + 2 * HOUR, **job)
        if number in (1, 9, 15, 25):  # few, at night, by hand
            night = DAY_0 + 3 * DAY_S + 2 * HOUR
            late = {"actor": "unknown" if actor == "agent" else actor, "partition": "odd", "raw_id": 9000 + number}
            make_job(user, labs[0], submit=night, start=night + 5, end=night + 70, **late)
    read = [reading(job.raw_id, 90 if job.raw_id % 200 else 10, 20) for job in Job.objects.filter(gpus__gt=0)]
    services.record_gpu_utilisation(actor=SYSTEM_ACTOR, cluster=cluster, readings=read)
    while not services.catch_up(cluster=cluster):
        pass
    return cluster


def drafted(cluster: Cluster) -> dict[str, Any]:
    return contents.build(Scope(SYSTEM_ACTOR, cluster, WEEK)).as_json()


def whole(cluster: Cluster, patch: pytest.MonkeyPatch) -> Found:
    """Every cell, with nothing withheld."""
    with patch.context() as open_to_all:
        open_to_all.setattr(engine_cells, "MIN_PEOPLE", 1)
        return cells(drafted(cluster))


def take_out(user: ClusterUser) -> None:
    for job in Job.objects.filter(cluster_user=user):
        mark(job)
        job.delete()
    while not services.catch_up(cluster=user.cluster):
        pass


def test_no_sum_and_no_rest_of_a_sum_is_that_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = plant()
    content = drafted(cluster)
    shown, everything = cells(content), whole(cluster, monkeypatch)
    columns = {
        (figure["key"], column["key"]): column
        for section in content["sections"] for figure in section["figures"] for column in figure["columns"]
        if column["unit"] in SUMS and figure["key"] not in NOT_OF_PEOPLE
    }  # fmt: skip
    changed, rests = Counter[tuple[str, str, str]](), Counter[tuple[str, str]]()

    def rest_of(found: Found, figure: str, column: str) -> float:
        """What a column holds besides the named rows that are shown."""
        told = {key for key, value in shown.items() if value is not None and key[1]}
        here = {key: value or 0 for key, value in found.items() if (key[0], key[2]) == (figure, column)}
        return round(sum(here.values()) - sum(value for key, value in here.items() if key in told), 6)

    for user in cluster.cluster_users.all():
        with transaction.atomic():
            take_out(user)
            without = whole(cluster, monkeypatch)
            changed.update(key for key, value in everything.items() if without.get(key) != value)
            rests.update(
                key for key, column in columns.items()
                if column["adds_up"] and rest_of(without, *key) != rest_of(everything, *key)
            )  # fmt: skip
            transaction.set_rollback(True)
    few = {key for key, value in shown.items()
           if value is not None and (key[0], key[2]) in columns and changed[key] in FEW}  # fmt: skip
    assert few == set()
    told = {(figure, column) for (figure, row, column), value in shown.items() if row and value is not None}
    # Of a column that shows nothing, other figures do not know the whole.
    assert {key for key, people in rests.items() if people in FEW and key in told} == set()
    assert sum(value is not None for value in shown.values()) > len(shown) / 4, "else nothing is told at all"

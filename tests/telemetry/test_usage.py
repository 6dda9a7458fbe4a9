"""`manage.py usage` prints what XDMoD counts on its own reference log."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services as telemetry_services
from telemetry.models import RollupDirty
from tests import factories
from tests.conftest import SHARED_DATA
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db

ADDITIVE = (
    "job_count", "cpu_hours", "wall_hours", "wait_hours", "node_hours", "gpu_hours", "never_started", "submissions",
)  # fmt: skip


def usage(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("usage", "--json", *options, stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def phillips(db: None) -> Cluster:
    cluster = factories.make_cluster("phillips")
    with (SHARED_DATA / "xdmod" / "phillips.log").open("rb") as stream:
        telemetry_services.ingest_file(actor=SYSTEM_ACTOR, cluster=cluster, stream=stream, format="xdmod")
    return cluster


@pytest.mark.shared_data
def test_the_reference_log_gives_the_reference_totals(phillips: Cluster) -> None:
    expected = json.loads((SHARED_DATA / "xdmod" / "verified_totals.json").read_text())["phillips"]
    found = usage("--cluster", "phillips", "--daily")
    assert {
        "rows": found["rows"], "skipped_none_assigned": found["never_started"], "job_count": found["job_count"],
        "total_cpu_hours": found["cpu_hours"], "total_wallduration_hours": found["wall_hours"],
        "total_waitduration_hours": found["wait_hours"], "total_node_hours": found["node_hours"],
        "total_gpu_hours": found["gpu_hours"], "active_person_count": found["users"],
        "active_pi_count": found["labs"], "max_processors": found["max_cores"],
        "expansion_factor": found["expansion_factor"],
    } == {name: value for name, value in expected.items() if name != "avg_processors"}  # fmt: skip
    assert found["submissions"] == expected["rows"]
    for name in ADDITIVE:
        assert round(sum(day[name] for day in found["days"]), 4) == found[name], name
    assert not RollupDirty.objects.exists()


def test_a_day_holds_its_part_of_a_job(cast: Any) -> None:
    user = cast.cluster.cluster_users.first()
    make_job(user, cast.lab, submit=DAY_0, start=DAY_0 + 82_800, end=DAY_0 + 93_600, cpus=2)
    found = usage("--cluster", "aster", "--from", "2026-07-02", "--to", "2026-07-02")
    assert (found["cpu_hours"], found["job_count"], found["submissions"], found["rows"]) == (4.0, 1, 0, 0)
    assert usage("--cluster", "aster")["cpu_hours"] == 6.0


def test_an_empty_cluster_has_zeros(cast: Any) -> None:
    found = usage("--cluster", "aster")
    assert (found["job_count"], found["cpu_hours"], found["expansion_factor"]) == (0, 0.0, None)


def test_text_shows_the_same_numbers(cast: Any) -> None:
    make_job(cast.cluster.cluster_users.first(), cast.lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 5000)
    out = StringIO()
    call_command("usage", "--cluster", "aster", "--daily", stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[4].split() == ["cpu_hours", "1.3889"]
    assert lines[-1].split()[:3] == ["2026-07-01", "1", "1.3889"]


def test_an_unknown_cluster_is_named_with_those_known(cast: Any) -> None:
    with pytest.raises(CommandError, match="known: aster"):
        call_command("usage", "--cluster", "borage")


def test_a_period_that_ends_before_it_begins_is_refused(cast: Any) -> None:
    with pytest.raises(CommandError, match="before it begins"):
        call_command("usage", "--cluster", "aster", "--from", "2026-07-02", "--to", "2026-07-01")


@pytest.mark.parametrize("option", ["--from", "--to"])
@pytest.mark.parametrize("text", ["01/02/2017", "2017-02-30", "0001-01-01", "July"])
def test_a_day_of_another_form_is_told_the_form_wanted(option: str, text: str, db: None) -> None:
    with pytest.raises(CommandError, match="Write it as 2026-07-31") as caught:
        call_command("usage", "--cluster", "aster", option, text)
    assert text in str(caught.value)

"""`manage.py usage` prints what XDMoD counts on its own reference log."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import Sum

from portal.celery import app as celery_app
from portal.core import clock
from principals.models import Cluster
from telemetry import services as telemetry_services
from telemetry import tasks
from telemetry.engine.slurm.records import JobRecord
from telemetry.engine.slurm.xdmod_text import XdmodReader
from telemetry.models import RollupDay, RollupDirty
from tests import factories
from tests.conftest import SHARED_DATA, Api
from tests.telemetry.job_rows import DAY_0, make_job
from tests.telemetry.logs import stream_records

pytestmark = pytest.mark.django_db

ADDITIVE = (
    "job_count", "cpu_hours", "wall_hours", "wait_hours", "node_hours", "gpu_hours", "never_started", "submissions",
)  # fmt: skip


def usage(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("usage", "--json", *options, stdout=out)
    return json.loads(out.getvalue())


LOG = SHARED_DATA / "xdmod" / "phillips.log"


def by_command(monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("ingest_jobs", str(LOG), cluster="phillips", format="xdmod")


def by_records(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = factories.make_cluster("phillips")
    with LOG.open("rb") as stream:
        records = [each for each in XdmodReader(stream, now_s=clock.now_s()) if isinstance(each, JobRecord)]
    stream_records(cluster, records)
    telemetry_services.catch_up(cluster=cluster)


def post(body: bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    """Post a body to the API; return what the worker is told to do."""
    told: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(tasks.run_ingest_batch, "delay", told.append)
        patch.setattr(transaction, "on_commit", lambda call, **_: call())
        address = "/api/v1/ingest/jobs?cluster=phillips&format=xdmod"
        answer = Api(factories.make_service_token()).client.post(address, body, content_type="text/plain")
    assert answer.status_code == 202, answer.content
    return told[0]


def by_the_api_and_the_workers_task(monkeypatch: pytest.MonkeyPatch) -> None:
    # The task as Celery runs it: found by its name, its argument through JSON.
    (given,) = json.loads(json.dumps([post(LOG.read_bytes(), monkeypatch)]))
    assert celery_app.tasks[tasks.run_ingest_batch.name].apply((given,)).successful()


def by_the_api_in_parts_that_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = LOG.read_bytes().splitlines(keepends=True)
    for first in (3000, 0, 1500, 2200):  # the last part first, and the seams twice
        body = b"".join(lines[first : first + 1700])
        assert telemetry_services.run_batch(post(body, monkeypatch))


PATHS = (by_command, by_records, by_the_api_and_the_workers_task, by_the_api_in_parts_that_overlap)


@pytest.fixture(params=PATHS, ids=lambda path: path.__name__)
def phillips(request: Any, db: None, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The reference log, come in by each of the ways that there are."""
    request.param(monkeypatch)
    return Cluster.objects.get(name="phillips")


def reckon() -> dict[str, Counter[str]]:
    """Core-seconds and jobs by queue, QoS and UTC day, from the log's own columns and nothing of ours."""
    sums: dict[str, Counter[str]] = {name: Counter() for name in ("day", "partition", "qos", "jobs")}
    for line in LOG.read_text().splitlines():
        part = line.split("|")
        if part[24] == "None assigned":  # which XDMoD leaves out
            continue
        start, end = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in part[12:14])
        cores = int(part[18])
        sums["partition"][part[3]] += cores * int((end - start).total_seconds())
        sums["qos"][part[4]] += cores * int((end - start).total_seconds())
        sums["jobs"][part[3]] += 1
        while start < end:
            midnight = min(end, datetime(start.year, start.month, start.day, tzinfo=UTC) + timedelta(days=1))
            sums["day"][start.date().isoformat()] += cores * int((midnight - start).total_seconds())
            start = midnight
    return sums


@pytest.mark.shared_data
def test_the_reference_log_gives_its_hours_by_day_queue_and_qos(phillips: Cluster) -> None:
    rows = RollupDay.objects.filter(cluster=phillips).order_by()

    def by(name: str, of: str = "core_s") -> dict[str, int]:
        found = rows.values_list(name).annotate(sum=Sum(of))
        return {str(key): number for key, number in found if number}

    expected = reckon()
    assert len(expected["day"]) == 11
    assert {name: by(name) for name in ("day", "partition", "qos")} == {
        name: dict(expected[name]) for name in ("day", "partition", "qos")
    }
    assert by("partition", "ended") == dict(expected["jobs"])
    assert by("partition", "submissions") == {"black": 4238, "crumpet": 34, "focaccia": 13}


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

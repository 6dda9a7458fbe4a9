"""What an assessment sums without a database is what `manage.py usage` sums with one."""

import io
import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from principals.models import Cluster
from telemetry.engine.assessment.assessor import Assessor
from telemetry.engine.assessment.figures.kinds import Reading
from telemetry.engine.assessment.frames import Known
from tests import factories
from tests.conftest import SHARED_DATA
from tests.telemetry.engine.sacct_texts import many_rows, row, text
from tests.telemetry.logs import ingest

pytestmark = pytest.mark.django_db

ODD = text(
    row(JobID="1", JobIDRaw="1", State="CANCELLED by 7", Start="None", Elapsed="00:00:00", NodeList="None assigned"),
    row(JobID="2", JobIDRaw="2", State="RUNNING", End="Unknown", Elapsed="00:30:00"),
    row(JobID="3_[1-9]", JobIDRaw="3", State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned"),
    row(JobID="4", JobIDRaw="4", State="REQUEUED"), row(JobID="5", JobIDRaw="5", JobName="a|b\nc"),
    row(JobID="6", JobIDRaw="6", Elapsed="00:20:00"), row(JobID="7", JobIDRaw="7", State="NOVEL"),
    row(JobID="8", JobIDRaw="8", NNodes="99999999999999P"), row(JobID="5", JobIDRaw="5", JobName="a|b\nc"),
)  # fmt: skip


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("many")


def both(cluster: Cluster, dump: bytes) -> tuple[dict[str, Any], Reading]:
    """What usage says, and what an assessment read."""
    ingest(cluster, dump)
    out = StringIO()
    call_command("usage", "--json", "--cluster", cluster.name, stdout=out)
    assessor = Assessor(now_s=1_800_000_000, known=Known())
    assessor.read(io.BytesIO(dump))
    return json.loads(out.getvalue()), Reading(assessor.finish())


def compare(found: dict[str, Any], reading: Reading) -> None:
    names = {"submissions": "submissions", "never_started": "never_started", "job_count": "ran"}
    hours = {"cpu_hours": "core_s", "wall_hours": "wall_s", "node_hours": "node_s", "gpu_hours": "gpu_s",
             "wait_hours": "wait_s"}  # fmt: skip
    told = {name: reading.sum(of) for name, of in names.items()}
    told |= {name: round(reading.sum(of) / 3600, 4) for name, of in hours.items()}
    assert told == {name: round(found[name], 4) for name in told}
    assert reading.found.jobs == found["rows"]


def test_many_jobs(cluster: Cluster) -> None:
    found, reading = both(cluster, b"".join(many_rows(600)))
    compare(found, reading)
    assert found["users"] == reading.people()


def test_odd_jobs(cluster: Cluster) -> None:
    compare(*both(cluster, ODD))


@pytest.mark.shared_data
@pytest.mark.parametrize(("version", "named"), [("22.05.8", "labl22"), ("24.11.5", "labl24"), ("25.11.7", "labl25")])
def test_what_real_slurms_print(version: str, named: str) -> None:
    dump = (SHARED_DATA / "slurm" / f"slurm-{version}" / "sacct_P.txt").read_bytes()
    compare(*both(factories.make_cluster(named), dump))

"""What an assessment makes of an export of GPU use is what the portal makes of it."""

import io
from collections import Counter

import pytest

from principals.actors import SYSTEM_ACTOR
from telemetry import services
from telemetry.engine.assessment.assessor import Assessor
from telemetry.engine.assessment.frames import Known
from telemetry.engine.assessment.gpus import Readings
from telemetry.models import Job, JobGpuUse
from tests import factories
from tests.telemetry.engine.gpu_texts import export, sample
from tests.telemetry.engine.sacct_texts import many_rows
from tests.telemetry.logs import ingest

pytestmark = pytest.mark.django_db


def test_quadrants_and_stranded_hours() -> None:
    cluster, dump = factories.make_cluster("aster"), b"".join(many_rows(300))
    ingest(cluster, dump)
    jobs = list(Job.objects.filter(gpus__gt=0, start__isnull=False).order_by("raw_id")[:60])
    assert len(jobs) > 10
    lines = [
        sample(job.raw_id, f"{job.raw_id}-{gpu}", job.raw_id * 7 % 101, (job.raw_id * 31 + gpu) % 101,
               f"{job.end:%Y-%m-%dT%H:%M:%S}")
        for job in jobs[::2] for gpu in range(2)
    ]  # fmt: skip
    services.import_gpu_file(
        actor=SYSTEM_ACTOR, cluster=cluster, lines=export(*lines).decode().splitlines(), format="dcgm", name="x"
    )
    readings = Readings()
    readings.read(io.BytesIO(export(*lines)))
    assessor = Assessor(now_s=1_800_000_000, known=Known(), readings=readings)
    assessor.read(io.BytesIO(dump))
    found = assessor.finish().gpus
    assert found is not None
    sums = {row["quadrant"]: row for row in found.sums.iter_rows(named=True)}
    stored = list(JobGpuUse.objects.select_related("job"))
    assert {name: row["jobs"] for name, row in sums.items() if name} == Counter(use.quadrant for use in stored)
    stranded = sum(min(use.gpus, use.job.gpus) * use.job.elapsed_s * (100 - use.used_percent) / 100 for use in stored)
    assert sum(row["stranded_s"] for row in sums.values()) == pytest.approx(stranded)
    everybody = Job.objects.filter(gpus__gt=0, start__isnull=False, end__isnull=False).count()
    assert sum(row["jobs"] for row in sums.values()) == everybody

"""`manage.py import_gpu_utilisation`: files of GPU use, with what became of every line."""

import base64
import gzip
import io
import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from portal.core import clock
from portal.core.models import AuditEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.management.commands.import_gpu_utilisation import lines_of
from telemetry.models import IngestBatch, JobGpu, JobGpuUse
from telemetry.services.ingest.chunks import LEASE, LeaseLost
from tests import factories
from tests.telemetry.gpu_rows import GIB, gpu_job

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
DCGM = "timestamp,Hostname,gpu,UUID,modelName,hpc_job,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_FB_TOTAL\n"
SAMPLES = "".join(
    f"2026-07-01T0{hour}:00:00Z,g1,0,GPU-{job},NVIDIA A100-SXM4-80GB,{job},{util},{used},81920\n"
    for job, util, used in ((7, 80, 61440), (8, 5, 4096)) for hour in (1, 2, 3)
)  # fmt: skip


def run(path: Path, format: str = "dcgm") -> str:
    out = io.StringIO()
    call_command("import_gpu_utilisation", str(path), cluster="aster", format=format, stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.fixture
def jobs(db: None) -> None:
    user = factories.make_cluster_user(factories.make_cluster("aster"), factories.make_user())
    lab = factories.make_lab("chem")
    for raw_id in (7, 8):
        gpu_job(user, lab, raw_id)


def test_samples_of_dcgm_become_the_use_of_jobs_and_a_second_run_changes_nothing(jobs: None, tmp_path: Path):
    path = tmp_path / "dcgm.csv"
    path.write_text(DCGM + SAMPLES + "2026-07-01T01:00:00Z,g1,1,GPU-9,A100,,0,0,81920\nbroken\n", encoding="utf-8")
    said = run(path)
    assert "3 readings" in said  # one of them set aside
    assert "new 2, changed 0" in said and "set aside for: columns 1" in said and "skipped: no_job 1" in said
    found = JobGpuUse.objects.order_by("job__raw_id").values_list("quadrant", "compute_percent", "fit_name")
    assert list(found) == [("both", 80, "A100 80 GB"), ("low", 5, "1g.10gb")]
    before = list(JobGpu.objects.values())
    assert "known already 2" in run(path)
    assert list(JobGpu.objects.values()) == before
    kept = IngestBatch.objects.order_by("pk").first().quarantined.get()
    assert (kept.line, kept.reason, kept.raw) == (9, "columns", "broken")


def test_summaries_of_jobstats_come_as_sacct_prints_them(jobs: None, tmp_path: Path):
    node = {"gpu_utilization": {"0": 12.5}, "gpu_used_memory": {"0": 60 * GIB}, "gpu_total_memory": {"0": 80 * GIB}}
    summary = base64.b64encode(gzip.compress(json.dumps({"nodes": {"g1": node}, "total_time": 7200}).encode())).decode()
    path = tmp_path / "sacct.txt"
    path.write_text(f"JobIDRaw|End|AdminComment\n7|2026-07-01T03:00:00|JS1:{summary}\n8|2026-07-01T03:00:00|JS1:None\n"
                    f"99|2026-07-01T03:00:00|JS1:{summary}\n", encoding="utf-8")  # fmt: skip
    said = run(path, "jobstats")
    assert "new 2" in said and "job not known yet 1" in said and "empty_summary 1" in said
    use = JobGpuUse.objects.get()
    assert (use.job.raw_id, use.quadrant, use.memory_percent, use.memory_is_peak) == (7, "memory", 75, True)
    # Neither jobstats nor Slurm named a model here.
    assert (use.fit, use.accelerator) == ("unknown", "")


def test_a_file_of_another_form_fails_whole_and_says_why(jobs: None, tmp_path: Path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(CommandError, match="Columns missing"):
        run(path)
    batch = IngestBatch.objects.get()
    assert (batch.state, batch.leased_until, batch.total_rows) == ("failed", None, 0) and "Columns" in batch.error
    assert not JobGpu.objects.exists()


def test_a_mistyped_cluster_of_which_nothing_was_stored_does_not_stay(db: None, tmp_path: Path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    for file in (path, tmp_path / "missing"):
        with pytest.raises(CommandError):
            run(file)
        assert not Cluster.objects.exists()


def test_standard_input_is_read_as_a_file_is_whatever_the_locale(jobs: None, monkeypatch: pytest.MonkeyPatch):
    body = DCGM.encode() + SAMPLES.encode() + b"\xff\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(body), encoding="ascii", errors="strict"))
    assert "new 2" in run(Path("-"))
    assert IngestBatch.objects.get().quarantined.get().raw == "\ufffd"


def test_an_error_of_ours_is_not_said_to_be_the_files(jobs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "dcgm.csv"
    path.write_text(DCGM + SAMPLES, encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("telemetry.services.gpu.files.take_readings", full)
    with pytest.raises(OSError, match="No space left"):
        run(path)


def test_a_file_that_breaks_off_says_so_and_what_it_stored_stays(jobs: None):
    def lines():
        yield DCGM.replace("\n", "")
        yield SAMPLES.splitlines()[0]
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        services.import_gpu_file(
            actor=SYSTEM_ACTOR,
            cluster=factories.make_cluster("boreas"), lines=lines(), format="dcgm", name="x",
        )  # fmt: skip
    batch = IngestBatch.objects.get()
    assert (batch.state, batch.leased_until) == ("failed", None) and "again" in batch.error
    assert AuditEvent.objects.get(verb="ingest.gpu_failed").object_id == str(batch.public_id)


def test_a_file_leaves_one_audit_row_however_many_slices_it_has(jobs: None, tmp_path: Path):
    path = tmp_path / "dcgm.csv"
    path.write_text(DCGM + SAMPLES + "broken\n" * 1200, encoding="utf-8")
    run(path)
    assert AuditEvent.objects.get(verb="ingest.gpu").payload["after"]["rejected"] == 1200


def test_whoever_lost_the_lease_of_a_file_writes_nothing_more(jobs: None):
    def lines():
        yield DCGM
        yield from SAMPLES.splitlines()
        IngestBatch.objects.update(leased_until=clock.now() - timedelta(seconds=1))
        services.sweep()

    with pytest.raises(LeaseLost):
        services.import_gpu_file(
            actor=SYSTEM_ACTOR, cluster=factories.make_cluster("aster"), lines=lines(), format="dcgm", name="x"
        )
    batch = IngestBatch.objects.get()
    assert (batch.state, batch.created_rows) == ("failed", 0) and not JobGpu.objects.exists()


def test_a_file_that_takes_longer_than_a_lease_to_read_stays_ours(jobs: None, monkeypatch: pytest.MonkeyPatch):
    start = clock.now()

    def lines():
        yield DCGM
        for number, line in enumerate(SAMPLES.splitlines()):
            monkeypatch.setattr(clock, "now", lambda later=start + LEASE * 0.75 * number: later)
            yield line
            services.sweep()

    services.import_gpu_file(
        actor=SYSTEM_ACTOR, cluster=factories.make_cluster("aster"), lines=lines(), format="dcgm", name="x"
    )
    assert IngestBatch.objects.get().state == "done"


def test_of_a_very_long_line_the_beginning_is_read():
    stream = io.BytesIO(b"x" * (2**20 + 5) + b"\nnext\n")
    assert [len(line) for line in lines_of(stream)] == [2**20, 5]

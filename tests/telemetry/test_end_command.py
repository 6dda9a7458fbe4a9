"""SIGTERM ends a command as Ctrl-C does: what it holds is given back, and the same command goes on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from portal.core import stopping
from portal.core.models import Lease
from principals.models import Cluster
from telemetry.models import IngestBatch, Job
from telemetry.services.gpu import files as gpu_files
from telemetry.services.ingest import running
from tests.support.capabilities import ROOT
from tests.telemetry.logs import many


@pytest.fixture
def _ends_on_sigterm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    stopping.end_on_sigterm()
    yield
    signal.signal(signal.SIGTERM, before)


def _terminate(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.django_db
@pytest.mark.usefixtures("_ends_on_sigterm")
def test_an_ingest_gives_its_batch_back_and_builds_the_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, built = tmp_path / "jobs.sacct", []
    log.write_bytes(many(20))
    with monkeypatch.context() as patch:
        patch.setattr(running, "finish_batch", _terminate)
        patch.setattr("telemetry.services.ingest.files.job_indexes.build_missing", lambda: built.append(1))
        with pytest.raises(SystemExit) as ended:
            call_command("ingest_jobs", str(log), "--cluster", "aster")
    assert ended.value.code == 143 and "Interrupted." in capsys.readouterr().err
    batch = IngestBatch.objects.get()
    assert (batch.state, batch.leased_until, built) == ("failed", None, [1])
    stopping.end_on_sigterm()
    call_command("ingest_jobs", str(log), "--cluster", "aster")
    assert IngestBatch.objects.get().state == "done" and Job.objects.count() == 20


@pytest.mark.django_db
@pytest.mark.usefixtures("_ends_on_sigterm")
def test_an_import_of_gpu_use_gives_its_batch_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cluster.objects.create(name="aster")
    export = tmp_path / "gpus.csv"
    export.write_text("JobID,gpu\n7,50\n")
    monkeypatch.setattr(gpu_files, "read_export", _terminate)
    with pytest.raises(stopping.Terminated):
        call_command("import_gpu_utilisation", str(export), "--cluster", "aster", "--format", "jobstats")
    batch = IngestBatch.objects.get()
    assert (batch.state, batch.leased_until) == ("failed", None)
    assert not Lease.objects.exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_any_command_ends_with_the_status_of_its_signal_and_no_traceback(number: int, status: int) -> None:
    code = "import time; print('ready', flush=True); time.sleep(60)"
    command = [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as running_one:
        assert running_one.stdout is not None and running_one.stdout.readline() == "ready\n"
        running_one.send_signal(number)
        _, said = running_one.communicate(timeout=30)
    assert (running_one.returncode, said.strip()) == (status, "Interrupted.")

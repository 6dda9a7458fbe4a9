"""PySlurm in a process of its own, with a stand-in for it: what it answers, and what becomes of its failures."""

import json
import shutil
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from principals.actors import SYSTEM_ACTOR
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.identity import Identity
from telemetry.engine.slurm.queue import QueueNote, Standing
from telemetry.engine.slurm.records import JobRecord, Outcome, StepSeen
from telemetry.engine.slurm.statistics import Asked, Statistics
from telemetry.models import InventoryReading, Job, Node, Qos, SlurmReader
from telemetry.services import Commands, PySlurm, Reader, SlurmUnavailable, serve
from telemetry.services.reader.service import Pace
from tests import factories
from tests.telemetry.logs import job_row, text

STAND_IN = Path(__file__).with_name("pyslurm_stand_in.py")
Made = Callable[..., PySlurm]
NOW_S = 1_800_000_000
AMOUNTS = {
    "cpu": {"count": 8, "type_and_name": "cpu"}, "mem": {"count": 4096, "type_and_name": "mem"}, "energy": None,
    "gres": {"gpu:a100": {"count": 2, "type_and_name": "gres/gpu:a100"}},
}  # fmt: skip
JOB = {
    "id": 7, "array_id": None, "array_task_id": None, "array_tasks_waiting": None, "heterogeneous_id": None,
    "heterogeneous_offset": 4294967294, "user_name": "ada", "user_id": 1001, "state": "COMPLETED", "exit_code": 0,
    "exit_code_signal": 0, "requeue_count": 0, "nodelist": "n1", "comment": None, "admin_comment": None,
    "submit_time": 1782900000,
    "eligible_time": 1782900000, "start_time": 1782900300, "end_time": 1782903900, "elapsed_time": 3600,
    "time_limit": 120, "allocated_tres": AMOUNTS, "requested_tres": AMOUNTS, "account": "chem", "cluster": "aster",
    "partition": "gpu", "qos": "normal", "name": "train", "submit_command": "sbatch run.sh",
    "working_directory": "/home/ada", "state_reason": "None", "steps": {"batch": {"stats": None}, "0": {}},
}  # fmt: skip
NODE = {
    "name": "n1", "state": "IDLE+DRAIN", "configured_gres": {"gpu:a100": 4}, "allocated_gres": {"gpu": 1},
    "total_cpus": 8, "real_memory": 4000, "partitions": ["gpu"], "reason": "fan",
}  # fmt: skip
ASSOCIATION = {
    "cluster": "aster", "account": "chem", "parent_account": None, "user": "ada", "partition": None,
    "is_default": True, "qos": ["normal"], "group_tres": AMOUNTS, "group_jobs": "UNLIMITED",
    "group_submit_jobs": "UNLIMITED", "max_jobs": 5, "max_submit_jobs": "UNLIMITED", "group_tres_mins": None,
    "group_wall_time": "UNLIMITED", "max_tres_per_job": None, "max_tres_per_node": None,
    "max_tres_mins_per_job": None, "max_wall_time_per_job": 60,
}  # fmt: skip
PARTITION = {
    "name": "gpu", "state": "UP", "nodes": "n1", "total_nodes": 1, "max_time": 60, "is_default": True,
    "allowed_accounts": ["ALL"], "denied_accounts": ["ALL"], "allowed_qos": ["ALL"], "denied_qos": ["ALL"],
    "qos": None, "preempt_mode": "OFF",
}  # fmt: skip
QUEUED = {
    "id": 7, "state": "RUNNING", "requeue_count": 0, "state_reason": "None", "standard_output": "/w/slurm-7.out",
    "standard_error": "",
}  # fmt: skip
TOLD: dict[str, Any] = {
    "Config": {"cluster_name": "aster", "version": "25.11.7"},
    "Jobs": [QUEUED, QUEUED | {"id": 6, "state": "COMPLETED"}],
    "db.Jobs": [JOB], "Nodes": [NODE], "Partitions": [PARTITION], "db.QoS": [{"name": "normal"}],
    "db.Associations": [ASSOCIATION, ASSOCIATION | {"cluster": "borealis", "user": "eve"}],
    "Statistics": {"data_since": 5, "rpcs_by_user": {"ada": {"user_name": "ada", "count": 3, "time": 27}}},
}  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Make a PySlurm that tells `TOLD`, with what is given instead; sacct prints the file `accounting`."""
    shutil.copy(STAND_IN, tmp_path / "pyslurm.py")
    (tmp_path / "sacct").write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\nexec cat {tmp_path}/accounting\n')
    (tmp_path / "sacct").chmod(0o755)

    def make(*, most_bytes: int = 2**20, timeout_s: float = 30, **told: Any) -> PySlurm:
        (tmp_path / "dumps.json").write_text(json.dumps(TOLD | told))
        sacct = Commands(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
        return PySlurm(
            environment={"PYTHONPATH": str(tmp_path)}, sacct=sacct, most_bytes=most_bytes, timeout_s=timeout_s
        )

    return make


def refused(source: PySlurm) -> SlurmUnavailable:
    with pytest.raises(SlurmUnavailable) as caught:
        source.look()
    return caught.value


def records(outcomes: list[Outcome]) -> list[JobRecord]:
    return [each for each in outcomes if isinstance(each, JobRecord)]


def test_each_question_is_answered_in_the_normal_form(made: Made) -> None:
    source = made()
    assert source.identify() == Identity("aster", "25.11.7")
    assert source.look() == {7: Standing("RUNNING", 0)}
    assert source.notes[7] == QueueNote("", "/w/slurm-7.out", "")
    assert source.count() == Statistics(5, {"ada": Asked(3, 27)})
    (record, *steps) = source.account_for([7, 9], now_s=NOW_S)
    assert isinstance(record, JobRecord)
    assert (record.cpus, record.gpus, record.gpu_types, record.mem_bytes) == (8, 2, ("a100",), 4096 * 2**20)
    assert steps == [StepSeen(7, "batch"), StepSeen(7, "0")]
    assert source.account_for([9], now_s=NOW_S) == []
    span = (datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 7, 2, tzinfo=UTC))
    assert source.account_between(*span, now_s=NOW_S) == [record, *steps]
    assert [(node.name, node.flags, node.gpus, node.gpus_used) for node in source.nodes().rows] == [
        ("n1", ("DRAIN",), 4, 1)
    ]
    assert [each.max_time_s for each in source.partitions().rows] == [3600]
    assert [each.name for each in source.qos().rows] == ["normal"]
    (association,) = source.associations("aster").rows
    assert association.limits.group.tres == (("cpu", 8), ("gres/gpu:a100", 2), ("mem", 4 * 2**30))
    assert source.calls == 10 and source.busy_s > 0
    with pytest.raises(FormatError, match="no association of chara"):
        source.associations("chara")


def test_of_a_requeued_job_every_stretch_is_told_by_sacct(made: Made, tmp_path: Path) -> None:
    stretches = (job_row(7, State="REQUEUED"), job_row(7, Submit="2026-07-01T12:00:00", Restarts="1"))
    (tmp_path / "accounting").write_bytes(text(*stretches))
    source = made(**{"db.Jobs": [JOB | {"requeue_count": 1}, JOB | {"id": 8}]})
    found = records(source.account_for([7, 8], now_s=NOW_S))
    assert sorted((each.raw_job_id, each.state) for each in found) == [
        (7, "COMPLETED"), (7, "REQUEUED"), (8, "COMPLETED"),
    ]  # fmt: skip
    assert "--jobs 7 " in (tmp_path / "asked").read_text()
    assert source.calls == 2


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        ({"behaves": "crashes"}, "pyslurm_crashed", "SIGSEGV"),
        ({"behaves": "hangs"}, "slurm_slow", "more than 1 s"),
        ({"behaves": "floods"}, "slurm_too_much", "more than 1048576 bytes"),
        ({"behaves": "refuses"}, "slurm_unreachable", "Unable to contact"),
        ({"behaves": "complains"}, "slurm_unavailable", "warning"),
        ({"broken": "libslurmfull.so: cannot open shared object file"}, "pyslurm_mismatch", "libslurmfull.so"),
        ({"version": "26.5.0"}, "pyslurm_mismatch", "PySlurm 26.5.0"),
        ({"Jobs": [{"number": 7}]}, "pyslurm_mismatch", "no attribute 'id'"),
    ],
)
def test_a_failure_of_pyslurm_is_one_of_its_process_and_says_what_to_do(
    made: Made, told: dict[str, Any], code: str, words: str
) -> None:
    error = refused(made(timeout_s=1 if told.get("behaves") == "hangs" else 30, **told))
    assert (error.code, words in error.detail) == (code, True), error.detail
    assert error.remedy and "pyslurm" not in sys.modules


def test_a_python_without_pyslurm_says_so(made: Made, tmp_path: Path) -> None:
    source = made()
    (tmp_path / "pyslurm.py").unlink()
    error = refused(source)
    assert error.code == "pyslurm_missing" and "--pyslurm-python" in error.remedy
    source.python = str(tmp_path / "python")
    error = refused(source)
    assert error.code == "slurm_missing" and "--pyslurm-python" in error.remedy


def test_a_slurm_of_another_series_is_refused(made: Made) -> None:
    source = made(Config={"cluster_name": "aster", "version": "24.11.5"})
    with pytest.raises(SlurmUnavailable) as caught:
        source.identify()
    assert caught.value.code == "pyslurm_mismatch" and "24.11.5" in caught.value.detail


@pytest.mark.django_db
def test_a_reader_outlives_a_crash_and_goes_on(made: Made, tmp_path: Path) -> None:
    source, stop, said = made(behaves="crashes"), threading.Event(), list[str]()

    def say(words: str) -> None:
        said.append(words)
        if "SIGSEGV" in words:  # and then it works again
            made()
        if "QoS" in words or len(said) > 9:
            stop.set()

    def count() -> Statistics:
        stop.set()
        return PySlurm.count(source)

    source.count = count  # type: ignore[method-assign]
    cluster = factories.make_cluster("aster")
    serve(actor=SYSTEM_ACTOR, cluster=cluster, source=source, pace=Pace(0.01, 300), stop=stop, say=say)
    assert "SIGSEGV" in said[1] and "Trying again" in said[1]
    assert Job.objects.get().state == "COMPLETED"


@pytest.mark.django_db
def test_what_pyslurm_does_not_tell_of_a_qos_stays_and_is_said(made: Made) -> None:
    cluster = factories.make_cluster("aster")
    Qos.objects.create(cluster=cluster, name="normal", priority=9, flags=["DenyOnLimit"], limits={"job_wall_s": 60})
    source = made(**{"db.QoS": [{"name": "normal"}, {"name": "trial"}]})
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=source)
    assert [reader.take_inventory(kind) for kind in InventoryReading.Kind] == [1, 1, 2, 1]
    assert list(Qos.objects.order_by("name").values_list("name", "priority", "limits")) == [
        ("normal", 9, {"job_wall_s": 60}), ("trial", None, {}),
    ]  # fmt: skip
    problems = dict(InventoryReading.objects.values_list("kind", "problem"))
    assert problems.pop("qos").startswith("PySlurm tells the names of QoS alone") and not any(problems.values())


@pytest.mark.django_db
def test_the_command_reads_with_pyslurm(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    given = ("slurm_reader", "--cluster", "aster", "--once", "--pyslurm-python", sys.executable)
    call_command(*given, "--source", "pyslurm")
    assert (Job.objects.get().state, Node.objects.get().name) == ("COMPLETED", "n1")
    assert SlurmReader.objects.get().problem == ""
    with pytest.raises(CommandError, match="goes with --source pyslurm"):
        call_command(*given)

"""The reader follows a real Slurm: what it asks, what it knows afterwards, and that a second one waits."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry.engine.slurm.identity import Identity
from telemetry.engine.slurm.queue import read_queue_json
from telemetry.models import Job, JobOutput, SchedulerCalls, SlurmReader
from telemetry.services import Commands, Reader, SlurmUnavailable
from telemetry.services.reader.naming import WrongCluster
from tests import factories
from tests.slurm.conftest import LONG, Fates
from tests.support import demo
from tests.support.capabilities import ROOT
from tests.support.slurm import CLUSTER, USERS, Slurm

pytestmark = [pytest.mark.django_db, pytest.mark.slurm]


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster(CLUSTER)


@pytest.fixture
def reader(cluster: Cluster, facility: Slurm) -> Reader:
    return Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=Commands(environment=facility.environment))


def states(job: int) -> list[str]:
    return list(Job.objects.filter(raw_id=job).order_by("submit").values_list("state", flat=True))


def look_until(reader: Reader, facility: Slurm, job: int, *wanted: str) -> None:
    def is_known() -> bool:
        reader.look()
        return states(job) == list(wanted)

    facility.wait_until(is_known, f"job {job} to be known as {wanted}")


def test_a_job_is_followed_from_its_submission_over_a_requeue_to_its_end(reader: Reader, facility: Slurm) -> None:
    job = facility.submit("--requeue", script=LONG)
    look_until(reader, facility, job, "RUNNING")
    facility.run("scontrol", "requeue", str(job))
    facility.wait_for_queue(job, "PENDING")
    look_until(reader, facility, job, "REQUEUED", "PENDING")
    facility.run("scancel", str(job))
    # No sweep of accounting lists this one: it never became eligible again.
    look_until(reader, facility, job, "REQUEUED", "CANCELLED")
    facility.wait_until(lambda: not reader.look() or not reader.unsettled, "everything to be settled")


def test_the_queue_says_why_a_job_waits_and_where_it_writes(reader: Reader, facility: Slurm) -> None:
    job = facility.submit("--begin=now+1hour", "--output=/logs/%j.out", "--error=/logs/100%%.err", script=LONG)
    array = facility.submit("--array=1-2", "--begin=now+1hour", "--output=/logs/%A_%a.out", script=LONG)

    def reasons() -> set[str]:
        reader.look()
        return set(Job.objects.filter(raw_id__in=(job, array)).values_list("reason", flat=True))

    facility.wait_until(lambda: reasons() == {"BeginTime"}, "the reason")
    facility.run("scancel", str(job), str(array))
    told = JobOutput.objects.of(reader.cluster, [job, array])
    assert told == {job: ("/logs/%j.out", "/logs/100%%.err"), array: ("/logs/%A_%a.out", "/logs/%A_%a.out")}


def test_a_sweep_finds_what_ended_while_nobody_looked(reader: Reader, cluster: Cluster, fates: Fates) -> None:
    reader.sweep()
    ended = (fates.completed, fates.failed, fates.odd, fates.pending_cancelled, fates.running_cancelled)
    assert [states(job) for job in ended] == [["COMPLETED"], ["FAILED"], ["COMPLETED"], ["CANCELLED"], ["CANCELLED"]]
    row = SlurmReader.objects.get(cluster=cluster)
    assert (row.problem, row.swept_until is not None, row.calls > 0) == ("", True, True)
    before = Job.objects.count()
    reader.sweep()
    assert Job.objects.count() == before


def test_a_reader_that_starts_anew_asks_about_the_jobs_it_knew(
    reader: Reader, cluster: Cluster, facility: Slurm
) -> None:
    job = facility.submit(script=LONG)
    look_until(reader, facility, job, "RUNNING")
    reader.close()
    facility.run("scancel", str(job))
    facility.wait_for(job, "CANCELLED")
    successor = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=reader.source)
    look_until(successor, facility, job, "CANCELLED")


def test_a_quiet_queue_costs_one_call_a_look(reader: Reader, facility: Slurm, fates: Fates) -> None:
    facility.wait_until(lambda: not reader.look() and not reader.unsettled, "a look that asks about nobody")
    calls = reader.row.calls
    reader.look()
    assert reader.row.calls == calls + 1


def test_what_users_ask_of_the_controller_is_counted(reader: Reader, facility: Slurm) -> None:
    reader.count()
    for _ in range(5):
        facility.run("squeue", user=USERS[1])
    reader.count()
    assert SchedulerCalls.objects.get(cluster_user__login=USERS[1]).calls >= 5


def test_a_slurm_that_is_not_there_or_warns_empties_nothing(
    reader: Reader, facility: Slurm, fates: Fates, tmp_path: Path
) -> None:
    reader.look()
    queue = dict(reader.queue)
    assert fates.waiting in queue
    reader.source.environment = {"PATH": str(tmp_path)}
    with pytest.raises(SlurmUnavailable) as caught:
        reader.look()
    assert caught.value.code == "slurm_missing"
    # An answer that is empty, with a warning beside it and no sign of failure, is what a controller that starts gives.
    (tmp_path / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs: warning' >&2\n")
    (tmp_path / "squeue").chmod(0o755)
    reader.source.environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    with pytest.raises(SlurmUnavailable, match="warning"):
        reader.look()
    assert reader.queue == queue


def test_it_knows_which_slurm_answers(reader: Reader, facility: Slurm) -> None:
    release = facility.run("sinfo", "--version").split()[-1]
    assert reader.source.identify() == Identity(CLUSTER, release)
    reader.meet()
    astre = factories.make_cluster("astre")
    with pytest.raises(WrongCluster) as caught:
        Reader(actor=SYSTEM_ACTOR, cluster=astre, source=reader.source).meet()
    assert f"--cluster {CLUSTER}" in caught.value.remedy


def test_the_queue_is_the_same_as_json(reader: Reader, facility: Slurm, fates: Fates) -> None:
    def is_same() -> bool:
        before, as_json = reader.source.look(), read_queue_json(facility.run("squeue", "--json"))
        return fates.waiting in before and as_json == before

    facility.wait_until(is_same, "both to be asked while nothing changes")


def run_reader(data: Path, facility: Slurm, *options: str) -> "subprocess.Popen[str]":
    environment: dict[str, Any] = demo.environment_of(data) | facility.environment
    command = [sys.executable, "manage.py", "slurm_reader", "--cluster", CLUSTER, "--every", "1", *options]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.one_database
def test_of_two_readers_one_stands_by_and_takes_over(facility: Slurm, fates: Fates, tmp_path: Path) -> None:
    data = tmp_path / "var"
    demo.manage(data, "migrate", "--verbosity", "0")
    # Known before: a new cluster goes again with a reader that ends before it stored anything.
    known = f"from principals.services import ensure_cluster; ensure_cluster({CLUSTER!r})"
    demo.manage(data, "shell", "--no-imports", "-c", known)
    with run_reader(data, facility) as first:
        try:
            assert first.stderr is not None
            assert first.stderr.readline() == f"Reading {CLUSTER}.\n"
            with run_reader(data, facility) as second:
                try:
                    assert second.stderr is not None
                    assert second.stderr.readline() == f"Another reader reads {CLUSTER}; standing by.\n"
                    first.send_signal(signal.SIGTERM)
                    assert first.wait(60) == 0
                    assert second.stderr.readline() == f"Reading {CLUSTER}.\n"
                    second.send_signal(signal.SIGINT)
                    assert second.wait(60) == 0
                finally:
                    second.kill()
        finally:
            first.kill()


def test_a_job_that_the_controller_labelled_is_an_agents(reader: Reader, facility: Slurm) -> None:
    job = facility.submit(script="true", environment={"CODEX_CI": "1"})
    facility.wait_for(job, "COMPLETED")

    def is_known() -> bool:
        reader.sweep()
        return states(job) == ["COMPLETED"]

    facility.wait_until(is_known, "the job to be known")
    found = Job.objects.get(raw_id=job)
    assert (found.actor, found.harness, found.actor_method) == ("agent", "codex", "environment_label")

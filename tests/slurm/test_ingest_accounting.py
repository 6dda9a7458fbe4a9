"""What a real Slurm accounts for is what the portal knows: every fate that a job can have."""

import pwd
from typing import Any

import pytest
from django.db.models import F

from principals.models import Cluster
from telemetry.models import IngestBatch, Job, QuarantinedRow
from tests import factories
from tests.slurm.conftest import ODD_COMMENT, ODD_NAME, Fates
from tests.support.slurm import ACCOUNT, CLUSTER, USERS, Slurm
from tests.telemetry.logs import ingest

pytestmark = [pytest.mark.django_db, pytest.mark.slurm]


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster(CLUSTER)


@pytest.fixture
def batch(cluster: Cluster, fates: Fates) -> IngestBatch:
    return ingest(cluster, fates.listed)


def row(job: int, **more: Any) -> Job:
    return Job.objects.get(raw_id=job, **more)


def test_every_record_is_taken_once_and_one_that_reads_two_ways_is_set_aside(
    batch: IngestBatch, cluster: Cluster, fates: Fates
) -> None:
    assert batch.state == "done"
    assert batch.step_rows > 0
    assert [row.reason for row in QuarantinedRow.objects.all()] == ["ambiguous_split"]
    assert f"|{fates.forged}|" in QuarantinedRow.objects.get().raw
    # Eleven, and the second stretch of the requeued job where accounting was told of it before its end.
    assert Job.objects.count() == batch.created_rows
    assert batch.created_rows in (11, 12)
    again = ingest(cluster, fates.listed)
    assert (again.created_rows, again.duplicate_rows) == (0, batch.created_rows)


@pytest.mark.parametrize(
    ("name", "state", "exit_code"),
    [("completed", "COMPLETED", 0), ("failed", "FAILED", 3), ("odd", "COMPLETED", 0)],
)
def test_an_ended_job_has_its_state_and_exit(
    batch: IngestBatch, fates: Fates, name: str, state: str, exit_code: int
) -> None:
    job = row(getattr(fates, name))
    assert (job.state, job.exit_code, job.exit_signal) == (state, exit_code, 0)
    assert job.end is not None and job.start is not None
    assert job.submit <= job.start <= job.end
    assert job.elapsed_s == (job.end - job.start).total_seconds()


def test_sizes_are_what_was_allocated(batch: IngestBatch, fates: Fates) -> None:
    job = row(fates.completed)
    assert (job.nodes, job.cpus, job.mem_bytes, job.partition, job.timelimit_s) == (1, 2, 100 * 2**20, "shared", 300)
    assert (job.cluster_user.login, job.account.name, job.node_list) == (USERS[1], ACCOUNT, "n1")


def test_text_that_people_write_comes_whole(batch: IngestBatch, fates: Fates) -> None:
    job = row(fates.odd)
    assert (job.job_name, job.extra["Comment"]) == (ODD_NAME, ODD_COMMENT)
    assert job.submit_line.startswith("sbatch ")


def test_array_tasks_are_jobs_of_their_own(batch: IngestBatch, fates: Fates) -> None:
    tasks = Job.objects.filter(array_job_id=fates.array)
    assert {job.job_id for job in tasks} == {f"{fates.array}_{task}" for task in (1, 2, 3)}
    assert tasks.values("raw_id").distinct().count() == 3


def test_who_cancelled_is_known_and_whether_it_ran(batch: IngestBatch, fates: Fates) -> None:
    pending, running = row(fates.pending_cancelled), row(fates.running_cancelled)
    assert (pending.state, running.state) == ("CANCELLED", "CANCELLED")
    assert (pending.cancelled_by_uid, running.cancelled_by_uid) == (pwd.getpwnam(USERS[1]).pw_uid, 0)
    assert (pending.start, running.start is None) == (None, False)
    assert pending.elapsed_s == 0


def test_a_stretch_that_never_became_eligible_is_found_by_its_id(
    batch: IngestBatch, cluster: Cluster, fates: Fates
) -> None:
    records = Job.objects.filter(raw_id=fates.requeued).order_by("submit")
    assert records[0].state == "REQUEUED"  # the other one is missing, as a rule, whatever window sacct is given
    named = ingest(cluster, fates.named)
    assert named.rejected_rows == 0, QuarantinedRow.objects.last()
    first, second = records.all()
    assert [(job.state, job.start is not None) for job in (first, second)] == [("REQUEUED", True), ("CANCELLED", False)]
    assert first.submit < second.submit


def test_out_of_memory_is_told_from_failure_where_cgroups_watch(
    batch: IngestBatch, fates: Fates, facility: Slurm
) -> None:
    job = row(fates.out_of_memory)
    expected = ("OUT_OF_MEMORY", 125) if facility.has_cgroups else ("FAILED", 9)
    assert (job.state, job.exit_signal) == expected


def test_a_job_that_waits_has_used_nothing(batch: IngestBatch, fates: Fates) -> None:
    job = row(fates.waiting)
    assert (job.state, job.start, job.end, job.elapsed_s) == ("PENDING", None, None, 0)
    assert not Job.objects.filter(end__lt=F("start")).exists()


def test_a_submission_that_its_qos_refuses_is_no_job(batch: IngestBatch, facility: Slurm) -> None:
    before = facility.run("sacct", "-a", "-X", "-n", "-P", "-o", "JobID")
    with pytest.raises(AssertionError, match="QOS"):
        facility.submit("--qos=tiny", "-n2", script="true")
    assert facility.run("sacct", "-a", "-X", "-n", "-P", "-o", "JobID") == before

"""What only the queue tells of a job, why it waits and where it writes, goes into the job's events."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from portal.core import clock
from portal.core.models import LiveEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry.engine.slurm.queue import Notes, Queue, QueueNote, Standing
from telemetry.engine.slurm.records import JobRecord
from telemetry.models import Job, JobOutput
from telemetry.services import Reader, prune
from telemetry.services.retention import OUTPUTS_KEPT
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
PENDING, RUNNING = Standing("PENDING", 0), Standing("RUNNING", 0)
OUT = QueueNote("", "/w/o-%j", "/w/e-%j")


class Source:
    """A queue that a test sets, and accounting that says the same without reasons or paths."""

    calls, busy_s, texts = 0, 0.0, None

    def __init__(self) -> None:
        self.queue: Queue = {}
        self.notes: Notes = {}
        self.asked: list[Sequence[int]] = []
        self.submit_s = clock.now_s() - 60

    def look(self) -> Queue:
        return dict(self.queue)

    def account_for(self, jobs: Sequence[int], *, now_s: int) -> list[JobRecord]:
        self.asked.append(jobs)
        return [self._record(job, now_s) for job in jobs]

    def _record(self, job: int, now_s: int) -> JobRecord:
        record, standing = (
            JobRecord(job, str(job), "ada", "PENDING", self.submit_s, account="chem"),
            self.queue.get(job),
        )
        if standing == PENDING:
            return record
        began = record._replace(state="RUNNING", start_s=now_s - 5, started=True)
        return began if standing else began._replace(state="COMPLETED", end_s=now_s)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture
def reader(cluster: Cluster, source: Source) -> Reader:
    return Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=source)  # type: ignore[arg-type]


def told(name: str) -> dict[str, Any]:
    return LiveEvent.objects.get(name=name).payload


def test_events_say_why_a_job_waits_and_where_it_writes(reader: Reader, source: Source, standing_clock: None) -> None:
    source.queue, source.notes = {7: PENDING}, {7: OUT._replace(reason="PartitionTimeLimit")}
    reader.look()
    said = told("job.submitted")
    assert (said["reason"], said["waits_for"]) == ("PartitionTimeLimit", "Asks for more time than its partition gives")
    assert "will not start as it is" in said["hint"]
    assert (said["stdout"], said["stderr"]) == ("/w/o-7", "/w/e-7")
    source.queue, source.notes = {7: RUNNING}, {7: OUT}
    reader.look()
    assert (told("job.started")["stdout"], told("job.started")["waits_for"]) == ("/w/o-7", "")
    source.queue, source.notes = {}, {}
    reader.look()
    assert (told("job.ended")["stdout"], told("job.ended")["reason"]) == ("/w/o-7", "")


def test_another_reason_is_kept_and_accounting_is_not_asked_for_it(reader: Reader, source: Source) -> None:
    source.queue, source.notes = {7: PENDING, 8: PENDING}, {7: QueueNote("Priority"), 8: QueueNote("Priority")}
    reader.look()
    source.notes = {7: QueueNote("Resources"), 8: QueueNote("Priority")}
    reader.look()
    assert dict(Job.objects.values_list("raw_id", "reason")) == {7: "Resources", 8: "Priority"}
    assert source.asked == [[7, 8]]


def test_paths_are_kept_while_a_job_is_in_the_queue_and_a_day_longer(
    reader: Reader, cluster: Cluster, source: Source
) -> None:
    source.queue, source.notes = {7: RUNNING, 8: RUNNING, 9: RUNNING}, {7: OUT, 8: OUT}
    reader.look()
    assert set(JobOutput.objects.values_list("raw_id", "left")) == {(7, None), (8, None)}
    source.queue = {8: RUNNING}
    Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=source).look()  # type: ignore[arg-type]  # one that starts anew
    assert JobOutput.objects.get(left=None).raw_id == 8
    JobOutput.objects.filter(raw_id=7).update(left=clock.now() - OUTPUTS_KEPT - timedelta(minutes=1))
    assert prune()["job_outputs"] == 1
    assert JobOutput.objects.get().raw_id == 8


def test_a_number_that_is_given_again_has_the_new_job_s_paths(reader: Reader, cluster: Cluster, source: Source) -> None:
    JobOutput.objects.create(cluster=cluster, raw_id=7, stdout="/old", left=clock.now())
    source.queue, source.notes = {7: RUNNING}, {7: OUT}
    reader.look()
    assert JobOutput.objects.values_list("stdout", "stderr", "left").get() == ("/w/o-%j", "/w/e-%j", None)


@pytest.mark.parametrize(
    "path", ["/w/token=ghp_0123456789abcdefghijklmnopqrstuvwxyzAB", "/w/" + "x" * 600], ids=["secret", "long"]
)
def test_a_path_that_must_not_be_stored_is_left_out(reader: Reader, source: Source, path: str) -> None:
    source.queue, source.notes = {7: RUNNING}, {7: OUT._replace(stdout=path)}
    reader.look()
    assert JobOutput.objects.values_list("stdout", "stderr").get() == ("", "/w/e-%j")

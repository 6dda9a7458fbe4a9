"""What hooks say, taken: once each, applied where a job is known, asked about where not; accounting corrects it."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.core import clock
from portal.core.models import LiveEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry import services
from telemetry.api.signatures import HEADER, signature_of
from telemetry.engine.attribution import UNKNOWN
from telemetry.engine.slurm.records import JobRecord
from telemetry.models import HookReport, Job, JobState
from telemetry.services.ingest import hooks
from telemetry.services.ingest.rows import footprint_of, make_row
from telemetry.services.ingest.stored import record_of
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


@pytest.fixture
def cluster() -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture
def stream(cluster: Cluster) -> services.RecordStream:
    return services.RecordStream(actor=SYSTEM_ACTOR, cluster=cluster, source="slurm_reader")


def record(**others: Any) -> JobRecord:
    now_s = clock.now_s()
    given = {
        "raw_job_id": 4, "job_id": "4", "user": "iris", "account": "chem", "state": "RUNNING", "submit_s": now_s - 90,
        "start_s": now_s - 60, "elapsed_s": 60, "nodes": 2, "cpus": 8, "gpus": 1, "gpu_types": ("a100",),
        "started": True, "partition": "shared", "comment": "campaign=c1", "campaign": "c1", "extra": {"Odd": "x"},
    }  # fmt: skip
    return JobRecord(**(given | others))


def end(job: JobRecord, kind: str = "jobcomp", state: str = "COMPLETED", **others: Any) -> services.HookEvent:
    now_s = clock.now_s()
    values = {
        "JOBID": job.raw_job_id, "JOBSTATE": state, "EXITCODE": "0:0", "SUBMIT": job.submit_s, "START": job.start_s,
        "END": now_s - 2, "NODECNT": 2, "ARRAYTASKID": 4294967294,
    }  # fmt: skip
    if kind != "jobcomp":
        values = {"SLURM_JOB_ID": job.raw_job_id}
    said = {name: str(value) for name, value in (values | others).items() if value is not None}
    return services.HookEvent(kind, clock.now().timestamp() - 1, said)


def take(cluster: Cluster, *events: services.HookEvent) -> list[str]:
    taken = services.record_hook_events(actor=SYSTEM_ACTOR, cluster=cluster, events=events)
    return [f"{each.outcome} {each.reason}".strip() for each in taken]


def told() -> list[tuple[str, str, str]]:
    events = LiveEvent.objects.order_by("id").values_list("name", "payload__state", "payload__source")
    return [(name, state, source) for name, state, source in events]


def test_an_end_of_a_known_job_is_told_and_accounting_has_the_last_word(
    cluster: Cluster, stream: services.RecordStream
) -> None:
    running = record()
    stream.write([running])
    assert take(cluster, end(running, state="FAILED", EXITCODE="3:0")) == ["applied"]
    job = Job.objects.get()
    assert (job.state, job.exit_code, job.gpus, job.campaign, job.extra["Odd"]) == ("FAILED", 3, 1, "c1", "x")
    assert told()[1:] == [("job.ended", "FAILED", "jobcomp")]
    payload = LiveEvent.objects.order_by("id").last().payload
    assert 2 <= payload["lag_s"] < 10 and payload["gpus"] == 1
    # What accounting said before it heard of the end changes nothing; what it says of the end does, and is no news.
    stream.write([running._replace(elapsed_s=61)])
    assert Job.objects.get().state == "FAILED"
    stream.write([running._replace(state="OUT_OF_MEMORY", end_s=clock.now_s() - 2, exit_signal=125)])
    assert Job.objects.get().state == JobState.OUT_OF_MEMORY
    assert len(told()) == 2


def test_a_job_that_accounting_knows_to_have_ended_stays_as_it_is(
    cluster: Cluster, stream: services.RecordStream
) -> None:
    running = record()
    stream.write([running._replace(state="TIMEOUT", end_s=clock.now_s() - 3)])
    assert take(cluster, end(running)) == ["known"]
    assert Job.objects.get().state == "TIMEOUT"
    assert told() == [("job.ended", "TIMEOUT", "slurm_reader")]


def test_what_was_told_before_changes_nothing(cluster: Cluster, stream: services.RecordStream) -> None:
    running = record()
    stream.write([running])
    event = end(running)
    again = services.HookEvent(event.kind, event.fired_s + 0.5, event.values)  # Slurm itself repeats it
    assert take(cluster, event, event) == ["applied", "duplicate"]
    assert take(cluster, event, again) == ["duplicate", "duplicate"]
    assert HookReport.objects.get().repeats == 3
    assert len(told()) == 2


def test_an_unknown_job_makes_no_row_and_waits_for_the_reader(cluster: Cluster, stream: services.RecordStream) -> None:
    running = record()
    assert take(cluster, end(running)) == ["waiting"]
    assert not Job.objects.exists() and not LiveEvent.objects.exists()
    assert hooks.waiting_jobs(cluster) == {4: "jobcomp"}
    stream.write([running], told_by=hooks.waiting_jobs(cluster))  # accounting has not heard of the end yet
    hooks.settle_waiting(cluster, [4], asked=True)
    assert told() == [("job.started", "RUNNING", "jobcomp"), ("job.ended", "COMPLETED", "jobcomp")]
    assert not hooks.waiting_jobs(cluster)


def test_a_requeue_is_no_end(cluster: Cluster, stream: services.RecordStream) -> None:
    running = record()
    stream.write([running])
    assert take(cluster, end(running, state="PENDING")) == ["waiting"]
    assert Job.objects.get().state == "RUNNING"
    closed = running._replace(state="REQUEUED", end_s=clock.now_s())
    again = running._replace(submit_s=clock.now_s(), state="PENDING", start_s=None, started=False, elapsed_s=0)
    stream.write([closed, again], told_by=hooks.waiting_jobs(cluster))
    hooks.settle_waiting(cluster, [4], asked=True)
    assert HookReport.objects.get().outcome == HookReport.Outcome.ANSWERED
    assert [name for name, *_ in told()] == ["job.started", "job.requeued", "job.submitted"]


def test_an_epilog_is_answered_by_the_job_completion_script(cluster: Cluster, stream: services.RecordStream) -> None:
    running = record()
    stream.write([running])
    assert take(cluster, end(running, "epilog"), end(running)) == ["known", "applied"]
    assert take(cluster, end(running, "epilog", SLURM_JOB_RESTART_COUNT="0")) == ["known"]
    assert len(told()) == 2


def test_a_row_of_all_tasks_of_an_array_is_not_ended_by_one(cluster: Cluster, stream: services.RecordStream) -> None:
    whole = record(job_id="4_[1-9]", state="PENDING", array_job_id=4, array_tasks=9, start_s=None, started=False)
    stream.write([whole])
    assert take(cluster, end(whole, ARRAYJOBID="4", ARRAYTASKID="2", START=clock.now_s() - 9)) == ["waiting"]
    assert Job.objects.get().state == "PENDING"


def test_an_end_at_no_possible_time_waits_for_accounting(cluster: Cluster, stream: services.RecordStream) -> None:
    running = record()
    stream.write([running])
    assert take(cluster, end(running, END=clock.now_s() + 200_000)) == ["waiting"]


def test_each_odd_event_has_its_reason(cluster: Cluster) -> None:
    odd, mail = end(record(), JOBID="x"), services.HookEvent("mail", clock.now().timestamp(), {})
    future = services.HookEvent("epilog", clock.now().timestamp() + 900, {"SLURM_JOB_ID": "4"})
    assert take(cluster, odd, mail, future) == ["rejected bad_number", "ignored", "rejected future_date"]
    assert not HookReport.objects.exists()


def test_what_accounting_never_answers_is_given_up(cluster: Cluster) -> None:
    take(cluster, end(record()))
    HookReport.objects.update(received=clock.now() - 2 * hooks.PATIENCE)
    hooks.settle_waiting(cluster, [4])
    assert HookReport.objects.get().outcome == HookReport.Outcome.WAITING  # it was never asked
    hooks.settle_waiting(cluster, [4], asked=True)
    assert HookReport.objects.get().outcome == HookReport.Outcome.UNANSWERED


@pytest.mark.parametrize(
    "given",
    [
        record(),
        record(state="FAILED", end_s=clock.now_s(), exit_code=3, exit_signal=9, cancelled_by_uid=7),
        record(job_id="4_[1-9]", array_job_id=4, array_tasks=9, state="PENDING", start_s=None, started=False),
        record(account="", group="unassigned", comment="", campaign="", gpu_types=(), extra={}),
    ],
)
def test_a_stored_job_gives_the_record_that_it_came_from(
    given: JobRecord, cluster: Cluster, stream: services.RecordStream
) -> None:
    stream.write([given])
    job = Job.objects.select_related("cluster", "cluster_user", "account", "lab").get()

    def row_of(one: JobRecord) -> Any:
        found = UNKNOWN
        return make_row(
            one, footprint_of(one, 1, 1, found), digest=0, ids=(1, 1, 1, 1), found=found, campaign="", changed_s=0,
            batch_id=0,
        )  # fmt: skip

    assert row_of(record_of(job)) == row_of(given)
    assert (record_of(job).user, record_of(job).account) == (given.user, given.account)


def post(token: str, body: dict[str, Any], *, signature: str = "") -> Any:
    data = json.dumps(body).encode()
    return Client().post(
        "/api/v1/ingest/slurm-events", data, content_type="application/json",
        headers={"Authorization": f"Bearer {token}", HEADER: signature or signature_of(data, token)},
    )  # fmt: skip


def test_events_come_signed_and_are_answered_one_by_one(cluster: Cluster, stream: services.RecordStream) -> None:
    running = record()
    stream.write([running])
    token = factories.make_service_token("ingest:events", cluster=cluster)
    event = end(running)
    sent = {"hook": event.kind, "fired": event.fired_s, "values": event.values}
    body = {"cluster": "aster", "events": [sent, sent, {"hook": "mail", "fired": event.fired_s, "values": {}}]}
    answer = post(token, body)
    assert [one["outcome"] for one in answer.json()["results"]] == ["applied", "duplicate", "ignored"]
    refused = post(token, body, signature="sha256=0")
    assert (refused.status_code, refused.json()["code"]) == (422, "signature_invalid")
    assert post(factories.make_service_token("ingest:jobs"), body).status_code == 403
    other = factories.make_service_token("ingest:events", cluster=factories.make_cluster("dahlia"))
    assert post(other, body).json()["code"] == "cluster_not_allowed"


@pytest.mark.parametrize("name", ["SUBMIT", "START", "END"])
def test_a_time_that_no_date_holds_stops_no_other_event(
    cluster: Cluster, stream: services.RecordStream, name: str
) -> None:
    job = record()
    stream.write([job])
    assert take(cluster, end(job, **{name: 2**39}), end(job)) == ["rejected bad_time", "applied"]


def test_what_accounting_never_answers_is_asked_less_and_less_often_and_never_all_at_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "MOST_DUE", 3)
    take(cluster, *(end(record(raw_job_id=number)) for number in range(10, 15)))
    assert hooks.due_jobs(cluster) == dict.fromkeys((10, 11, 12), "jobcomp")
    began, asked = clock.now(), Counter[int]()
    for tick in range(600):  # half a second each
        monkeypatch.setattr(clock, "now", lambda tick=tick: began + timedelta(seconds=tick / 2))
        due = hooks.due_jobs(cluster)
        assert len(due) <= 3
        asked.update(due.keys())
        hooks.settle_waiting(cluster, due, asked=True)
    assert set(asked) == set(range(10, 15)) and max(asked.values()) <= 11  # it was asked 600 times

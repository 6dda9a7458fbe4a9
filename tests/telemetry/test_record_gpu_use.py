"""Readings of GPUs: recorded once, replaced by what is newer, kept until their job is known."""

from datetime import timedelta
from random import Random

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from portal.core import clock, leases, stopping
from portal.core.errors import NotAllowed
from portal.core.models import AuditEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, ClusterUser, Lab
from telemetry import services
from telemetry.engine.gpu_use import GpuReading
from telemetry.models import IngestSource, JobGpu, JobGpuUse, Node
from telemetry.services.gpu.waiting import LEASE
from telemetry.services.retention import GPU_WAITS
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.gpu_rows import DAY_0, ENDED, GIB, HOUR, gpu_job, reading

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture
def user(cluster: Cluster) -> ClusterUser:
    return factories.make_cluster_user(cluster, factories.make_user())


@pytest.fixture
def lab(db: None) -> Lab:
    return factories.make_lab("chem")


def record(cluster: Cluster, *readings: GpuReading) -> list[str]:
    found = services.record_gpu_utilisation(actor=SYSTEM_ACTOR, cluster=cluster, readings=readings)
    return [each.outcome + (" waits" if each.waits else "") + each.reason for each in found]


def uses() -> list[tuple[object, ...]]:
    return list(
        JobGpuUse.objects.order_by("job__raw_id").values_list("job__raw_id", "gpus", "quadrant", "fit", "fit_name")
    )


def test_it_works(cluster: Cluster, user: ClusterUser, lab: Lab):
    job = gpu_job(user, lab, 7, gpus=2)
    assert record(cluster, reading(7, 90, 80), reading(7, 20, 30, gpu="g1:1")) == ["created", "created"]
    use = JobGpuUse.objects.get()
    assert (use.job, use.gpus, use.compute_percent, use.memory_percent, use.used_percent) == (job, 2, 55, 55, 60)
    assert (use.quadrant, use.accelerator, use.peak_memory_bytes) == ("both", "nvidia-a100-80gb", 64 * GIB)
    source = IngestSource.objects.get()
    assert (source.kind, int(source.last_record_at.timestamp())) == ("gpu", ENDED)
    assert AuditEvent.objects.get(verb="ingest.gpu").payload["after"] == {
        "created": 2, "updated": 0, "waiting": 0, "source": "api"
    }  # fmt: skip


def test_the_same_again_changes_nothing_and_newer_replaces_older(cluster: Cluster, user: ClusterUser, lab: Lab):
    gpu_job(user, lab, 7)
    assert record(cluster, reading(7, 10, 5)) == ["created"]
    before = JobGpu.objects.values().get()
    assert record(cluster, reading(7, 10, 5)) == ["unchanged"]
    assert JobGpu.objects.values().get() == before
    assert record(cluster, reading(7, 99, 5, at=ENDED - 1)) == ["late"]
    assert record(cluster, reading(7, 70, 60, at=ENDED + 1)) == ["updated"]
    assert uses() == [(7, 1, "both", "whole", "A100 80 GB")]
    assert AuditEvent.objects.filter(verb="ingest.gpu").count() == 2


def test_rows_of_one_call_are_judged_in_order(cluster: Cluster, user: ClusterUser, lab: Lab):
    gpu_job(user, lab, 7)
    sent = [reading(7, 10), reading(7, 10), reading(7, 60, at=ENDED + 5), reading(7, 90)]
    assert record(cluster, *sent) == ["created", "unchanged", "updated", "late"]
    assert uses() == [(7, 1, "compute", "smaller", "A100 40 GB")]


def test_a_reading_waits_for_its_job(cluster: Cluster, user: ClusterUser, lab: Lab):
    assert record(cluster, reading(7, 10, 5)) == ["created waits"]
    assert record(cluster, reading(7, 10, 5)) == ["unchanged waits"]
    with CaptureQueriesContext(connection) as asked:
        assert services.match_gpu_utilisation() == 0
    told = [query["sql"] for query in asked if "core_lease" not in query["sql"] and "SAVEPOINT" not in query["sql"]]
    assert all(sql.startswith("SELECT") and "FOR " not in sql for sql in told), "no lock in vain"
    gpu_job(user, lab, 7)
    assert services.match_gpu_utilisation() == 1
    assert uses() == [(7, 1, "low", "mig", "1g.10gb")]
    assert services.match_gpu_utilisation() == 0
    assert AuditEvent.objects.get(verb="ingest.gpu_matched").payload["after"] == {"matched": 1}


def test_one_process_matches_at_a_time_and_none_that_is_to_end(
    cluster: Cluster, user: ClusterUser, lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    record(cluster, reading(7, 10))
    gpu_job(user, lab, 7)
    with leases.held(LEASE, seconds=60):
        assert services.match_gpu_utilisation() == 0
    with monkeypatch.context() as patched:
        patched.setattr(stopping, "_asked", True)
        assert services.match_gpu_utilisation() == 0
    assert services.match_gpu_utilisation() == 1


@pytest.mark.parametrize(("second", "compute"), [(ENDED + 9, 60), (ENDED - 9, 10)])
def test_of_what_waited_and_what_came_after_the_newer_stands(cluster, user, lab, second: int, compute: float):
    record(cluster, reading(7, 10))
    gpu_job(user, lab, 7)
    assert record(cluster, reading(7, 60, at=second)) == ["created"]
    assert services.match_gpu_utilisation() == 1
    assert JobGpu.objects.values_list("compute_percent", flat=True).get() == compute
    assert JobGpuUse.objects.get().compute_percent == compute


def test_what_was_measured_after_a_run_waits_for_the_next_one(cluster: Cluster, user: ClusterUser, lab: Lab):
    first = gpu_job(user, lab, 7, state="REQUEUED")
    running = gpu_job(user, lab, 8, end=None, usage_end=ENDED, state="RUNNING")
    later = ENDED + 5 * HOUR
    sent = [reading(7, 10), reading(7, 90, at=later), reading(8, 10), reading(8, 90, at=later)]
    assert record(cluster, *sent) == ["created", "created waits", "created", "created waits"]
    assert services.match_gpu_utilisation() == 0
    second = gpu_job(user, lab, 7, start=ENDED + 3 * HOUR)
    type(running).objects.filter(pk=running.pk).update(usage_end=later)
    assert services.match_gpu_utilisation() == 2
    assert dict(JobGpuUse.objects.values_list("job", "compute_percent")) == {
        first.pk: 10, second.pk: 90, running.pk: 90,
    }  # fmt: skip


def test_of_a_job_that_was_requeued_at_once_each_run_has_its_own_reading(cluster, user, lab):
    first = gpu_job(user, lab, 7, state="REQUEUED")
    second = gpu_job(user, lab, 7, start=ENDED + 120)
    record(cluster, reading(7, 10), reading(7, 90, at=ENDED + 120 + 2 * HOUR))
    assert dict(JobGpuUse.objects.values_list("job", "compute_percent")) == {first.pk: 10, second.pk: 90}


def test_a_recycled_id_is_matched_by_time(cluster: Cluster, user: ClusterUser, lab: Lab):
    old = gpu_job(user, lab, 7)
    new = gpu_job(user, lab, 7, start=DAY_0 + 48 * HOUR)
    record(cluster, reading(7, 10), reading(7, 90, at=DAY_0 + 50 * HOUR))
    assert dict(JobGpuUse.objects.values_list("job", "compute_percent")) == {old.pk: 10, new.pk: 90}


def test_a_job_that_had_not_started_is_not_taken_for_it(cluster: Cluster, user: ClusterUser, lab: Lab):
    gpu_job(user, lab, 7, start=ENDED + HOUR)
    assert record(cluster, reading(7)) == ["created waits"]


def test_any_order_split_and_repetition_gives_the_same(cluster: Cluster, user: ClusterUser, lab: Lab):
    sent = [
        reading(job, 10 * job, 5 * gpu, gpu=f"g1:{gpu}", at=ENDED + step)
        for job in (1, 2, 3) for gpu in (0, 1) for step in (0, 10)
    ]  # fmt: skip
    for job in (1, 2, 3):
        gpu_job(user, lab, job, gpus=2)
    record(cluster, *sent)
    wanted = uses(), list(JobGpu.objects.order_by("raw_id", "gpu").values_list("raw_id", "gpu", "measured"))
    for seed in range(5):
        JobGpu.objects.all().delete()
        JobGpuUse.objects.all().delete()
        mixed = Random(seed).sample(sent * 2, len(sent) * 2)
        cut = Random(seed).randrange(len(mixed))
        record(cluster, *mixed[:cut])
        record(cluster, *mixed[cut:])
        assert (
            uses(),
            list(JobGpu.objects.order_by("raw_id", "gpu").values_list("raw_id", "gpu", "measured")),
        ) == wanted


def test_slurms_type_stands_in_for_a_model_and_nodes_say_what_else_there_is(cluster, user, lab):
    gpu_job(user, lab, 7, gpus=2, extra={"gpu_types": ["h200"]})
    Node.objects.create(cluster=cluster, name="g1", state="IDLE", cpus=1, memory_bytes=1, gpus=4, gpu_types={"a100": 4})
    sent = [
        reading(7, 10, 10, gpu=f"g{n}:0", model="", total_memory_bytes=141 * GIB, peak_memory_bytes=20 * GIB)
        for n in (1, 2)
    ]
    record(cluster, *sent)
    # A node's a100 may be of 40 GB: what fits that fits both.
    assert uses() == [(7, 2, "low", "smaller", "A100 40 GB")]


def test_bad_rows_are_told_and_the_others_taken(cluster: Cluster, user: ClusterUser, lab: Lab):
    gpu_job(user, lab, 7)
    soon = clock.now_s() + 3600
    sent = [
        reading(0),
        reading(7, 101),
        reading(7),
        reading(7, at=soon),
        reading(7, gpu="ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"),
    ]
    assert record(cluster, *sent) == [
        "rejectedjob_invalid", "rejectedpercent_out_of_range", "created", "rejectedfuture_date",
        "rejectedsecret_in_name",
    ]  # fmt: skip


def test_it_validates_who_sends(cast: Cast):
    with pytest.raises(NotAllowed):
        services.record_gpu_utilisation(
            actor=factories.actor_of(cast.colleague), cluster=cast.cluster, readings=[reading(7)]
        )


def test_queries_do_not_grow_with_the_readings(cluster, user, lab, django_assert_max_num_queries):
    for job in range(1, 41):
        gpu_job(user, lab, job)
    with django_assert_max_num_queries(24):
        record(cluster, *(reading(job) for job in range(1, 41)))


def test_a_reading_whose_job_never_came_goes_after_its_term(cluster: Cluster):
    record(cluster, reading(7), reading(8))
    JobGpu.objects.filter(raw_id=7).update(received=clock.now() - GPU_WAITS - timedelta(seconds=1))
    assert services.prune()["gpu_readings"] == 1
    assert JobGpu.objects.get().raw_id == 8


def a_row(**fields: object) -> dict[str, object]:
    return {
        "job": 7, "gpu": "g1:0", "compute_percent": 20, "memory_percent": 10.5, "peak_memory_bytes": 9 * GIB,
        "measured": "2026-07-01T03:00:00Z", **fields,
    }  # fmt: skip


def post(api: Api, *rows: dict[str, object], cluster: str = "aster"):
    return api.post("/ingest/gpu-utilisation", {"cluster": cluster, "rows": list(rows)})


def test_the_api_answers_each_row(service_api: Api):
    answer = post(service_api, a_row(), a_row(compute_percent=120), a_row())
    assert answer.status_code == 200, answer.content
    assert answer.json()["results"] == [
        {"outcome": "created", "reason": "", "waits": True},
        {"outcome": "rejected", "reason": "percent_out_of_range", "waits": False},
        {"outcome": "unchanged", "reason": "", "waits": True},
    ]


@pytest.mark.parametrize("rows", [[], [a_row()] * 1001, [a_row(measured="2026-07-01T03:00:00")], [a_row(job="x")]])
def test_the_api_refuses_a_malformed_body_whole(service_api: Api, rows):
    assert post(service_api, *rows).status_code == 422
    assert not JobGpu.objects.exists()


def test_a_task_of_an_array_is_never_taken_for_the_job_whose_digits_it_has(service_api: Api):
    assert "'7_1' is no raw job id" in post(service_api, a_row(job="7_1")).json()["detail"]
    assert post(service_api, a_row(job="71")).status_code == 200
    assert JobGpu.objects.get().raw_id == 71


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=500)
def test_the_body_is_bounded(service_api: Api):
    assert post(service_api, *[a_row()] * 20).status_code == 413


def test_a_service_needs_the_scope_and_its_own_cluster(cast: Cast, agent_api: Api):
    factories.make_cluster("boreas")
    assert post(Api(factories.make_service_token("ingest:jobs")), a_row()).status_code == 403
    assert post(agent_api, a_row()).status_code == 403
    bound = Api(factories.make_service_token("ingest:gpu", cluster=cast.cluster))
    assert post(bound, a_row()).status_code == 200
    assert post(bound, a_row(), cluster="boreas").json()["code"] == "cluster_not_allowed"

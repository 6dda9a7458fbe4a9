"""Batches that a worker works through: leases, death in the middle, errors, the sweep."""

import importlib
import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.apps import apps

from portal.core import clock, stopping
from portal.core.actors import ActorRef
from portal.core.models import AuditEvent
from principals.actors import SYSTEM_ACTOR, Actor
from principals.models import Cluster, ServiceAccount
from principals.permissions import actor_for_user
from telemetry import services, tasks
from telemetry.models import IngestBatch, IngestPayload, Job, RollupDirty
from telemetry.services.ingest import chunks, reading, uploads
from tests import factories
from tests.conftest import Cast
from tests.support.capabilities import ROOT
from tests.telemetry.logs import counts, facts, ingest, job_row, many, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What was sent to the broker."""
    hints: list[int] = []
    monkeypatch.setattr(tasks.run_ingest_batch, "delay", hints.append)
    return hints


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 50 rows and pieces of 4 KiB, so that a small body has many of both."""
    monkeypatch.setattr(uploads, "PIECE_BYTES", 4096)
    monkeypatch.setattr("telemetry.services.ingest.running.cut_stream", lambda reader: reading.cut_stream(reader, 50))


def accept(body: bytes, cluster: str = "aster", format: str = "sacct") -> IngestBatch:
    return services.accept_upload(actor=SYSTEM_ACTOR, cluster_name=cluster, body=body, format=format)


def fail_at(monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
    """Let the n-th chunk die inside its transaction, after all its rows were written."""
    done, move_on = [0], chunks.move_on

    def dying(*args: object) -> object:
        done[0] += 1
        if done[0] == number:
            raise error
        return move_on(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(chunks, "move_on", dying)


def test_a_body_is_stored_and_sent_after_commit(sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        batch = accept(many(20))
        assert sent == []
    assert sent == [batch.pk] and batch.state == "queued"
    assert services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert (batch.state, counts(batch)) == ("done", {"created": 20})
    assert not IngestPayload.objects.exists() and batch.leased_until is None
    assert batch.offset == batch.bytes_total


def test_the_same_body_gives_the_same_batch(sent):
    first = accept(many(20))
    assert accept(many(20)) == first
    services.run_batch(first.pk)
    assert accept(many(20)) == first
    assert accept(many(20), cluster="other") != first


@pytest.mark.usefixtures("_small")
def test_a_batch_that_died_goes_on_after_its_last_chunk(sent, monkeypatch: pytest.MonkeyPatch):
    body = many(500) + text(job_row(9, Submit="never")).split(b"\n", 1)[1]
    whole = factories.make_cluster("whole")
    expected = counts(ingest(whole, body))
    batch = accept(body)
    with monkeypatch.context() as patch:
        fail_at(patch, 5, SystemExit())  # as kill does: nothing of ours runs after it
        with pytest.raises(SystemExit):
            services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert (batch.state, batch.total_rows, Job.objects.filter(cluster=batch.cluster).count()) == ("running", 200, 200)
    assert not services.run_batch(batch.pk), "its lease still runs"
    IngestBatch.objects.update(leased_until=clock.now() - timedelta(seconds=1))
    assert services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert (batch.state, counts(batch)) == ("done", expected)
    assert facts(batch.cluster) == facts(whole)
    assert not RollupDirty.objects.exists()
    assert AuditEvent.objects.filter(verb="ingest.jobs", object_id=str(batch.public_id)).count() == 1


@pytest.mark.usefixtures("_small")
def test_a_worker_that_is_to_end_leaves_the_rest_to_the_next_at_once(sent, monkeypatch: pytest.MonkeyPatch):
    batch = accept(many(200))
    stops = iter([False] * 3)
    with monkeypatch.context() as patch:
        patch.setattr(stopping, "asked", lambda: next(stops, True))
        assert not services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert (batch.state, batch.leased_until, batch.attempts, batch.total_rows) == ("queued", None, 0, 150)
    assert services.run_batch(batch.pk), "nothing holds it"
    batch.refresh_from_db()
    assert (batch.state, counts(batch), RollupDirty.objects.exists()) == ("done", {"created": 200}, False)


def test_rollups_stop_with_their_process_and_stay_marked(sent, monkeypatch: pytest.MonkeyPatch):
    batch = accept(many(20))
    with monkeypatch.context() as patch:
        patch.setattr("telemetry.services.rollups.catch_up", lambda **_: True)
        services.run_batch(batch.pk)
    marked = RollupDirty.objects.count()
    with monkeypatch.context() as patch:
        patch.setattr(stopping, "asked", lambda: True)
        assert services.refresh() == 0
        with pytest.raises(stopping.Stopping):
            services.catch_up(cluster=batch.cluster)
    assert marked == RollupDirty.objects.count() > 0
    assert services.refresh() == marked, "whoever comes next finds no lease"


@pytest.mark.usefixtures("_small")
def test_whoever_lost_the_lease_writes_nothing_more(sent, monkeypatch: pytest.MonkeyPatch):
    batch, move_on = accept(many(200)), chunks.move_on

    def robbed(*args: object) -> object:
        if IngestBatch.objects.filter(pk=batch.pk, offset__gt=0).exists():
            IngestBatch.objects.filter(pk=batch.pk).update(leased_until=clock.now() + timedelta(hours=1))
        return move_on(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(chunks, "move_on", robbed)
    assert not services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert (batch.state, batch.total_rows, Job.objects.count()) == ("running", 50, 50)


@pytest.mark.usefixtures("_small")
def test_an_error_is_tried_again_and_after_three_the_batch_fails(sent, monkeypatch: pytest.MonkeyPatch, caplog):
    batch = accept(many(200))
    monkeypatch.setattr("telemetry.services.ingest.rows.write", lambda *_: 1 / 0)
    for attempt in (1, 2):
        assert not services.run_batch(batch.pk)
        batch.refresh_from_db()
        assert (batch.state, batch.attempts) == ("queued", attempt)
    assert services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert batch.state == "failed" and "ZeroDivisionError" in batch.error and "3 times" in batch.error
    assert IngestPayload.objects.exists(), "an operator may still send it on its way"


def test_a_batch_whose_worker_always_dies_fails_too(sent):
    batch = accept(many(20))
    IngestBatch.objects.update(state="running", attempts=3, leased_until=clock.now() - timedelta(seconds=1))
    assert services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert batch.state == "failed" and "ended 3 times before line 1" in batch.error


def test_a_body_of_another_form_fails_at_once(sent):
    batch = accept(b"JobID|User\n1|ada\n")
    assert services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert batch.state == "failed" and "TZ=UTC sacct" in batch.error


def test_the_sweep_sends_what_nobody_works_on_once_a_minute(sent):
    fresh, old, lapsed, running = accept(many(1)), accept(many(2)), accept(many(3)), accept(many(4))
    past, future = clock.now() - timedelta(seconds=30), clock.now() + timedelta(seconds=30)
    IngestBatch.objects.filter(pk=old.pk).update(created=past)
    IngestBatch.objects.filter(pk=lapsed.pk).update(state="running", leased_until=past)
    IngestBatch.objects.filter(pk=running.pk).update(state="running", leased_until=future)
    assert services.sweep() == 2 and sent == [old.pk, lapsed.pk]
    assert services.sweep() == 1 and fresh.state == "queued", "the queued one waits its turn"
    assert services.run_batch(old.pk), "a batch that was sent again may be taken at once"


def test_the_sweep_closes_what_a_command_left(sent):
    cluster = factories.make_cluster("aster")
    past = clock.now() - timedelta(minutes=5)
    batch = IngestBatch.objects.create(
        cluster=cluster, source="file", format="sacct", sent_by="x", state="running", leased_until=past, line=77
    )
    services.sweep()
    batch.refresh_from_db()
    assert batch.state == "failed" and "before line 77" in batch.error and sent == []


@pytest.mark.usefixtures("_small")
def test_ctrl_c_leaves_a_batch_that_the_same_file_resumes(monkeypatch: pytest.MonkeyPatch):
    cluster, whole = factories.make_cluster("aster"), factories.make_cluster("whole")
    body = many(500)
    ingest(whole, body)
    with monkeypatch.context() as patch:
        fail_at(patch, 4, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            ingest(cluster, body)
    left = IngestBatch.objects.get(cluster=cluster)
    assert (left.state, left.total_rows) == ("failed", 150) and "Interrupted before line 152" in left.error
    batch = ingest(cluster, body)
    assert batch == left and counts(batch) == {"created": 500}
    assert facts(cluster) == facts(whole)


def _count(path: Path) -> tuple[int, int]:
    """Jobs and the batch's own count in another process's database, read from outside."""
    import sqlite3

    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        jobs = database.execute("SELECT count(*) FROM telemetry_job").fetchone()[0]
        rows = database.execute("SELECT coalesce(sum(created_rows), 0) FROM telemetry_ingestbatch").fetchone()[0]
    return jobs, rows


@pytest.mark.soak
@pytest.mark.one_database
def test_kill_9_at_any_chunk_loses_and_doubles_nothing(tmp_path: Path):
    log, data = tmp_path / "jobs.sacct", tmp_path / "data"
    log.write_bytes(many(20_000))
    environment = os.environ | {"GATEHOUSE_DATA": str(data), "LOG_LEVEL": "ERROR"}
    environment.pop("DATABASE_URL", None)
    manage = [sys.executable, str(ROOT / "manage.py")]
    subprocess.run([*manage, "migrate", "-v0"], env=environment, check=True)
    command = [*manage, "ingest_jobs", str(log), "--cluster", "aster"]
    wanted = random.randrange(2_000, 12_000)
    with subprocess.Popen(command, env=environment) as victim:
        deadline = time.monotonic() + 300
        while _count(data / "gatehouse.sqlite3")[0] < wanted and time.monotonic() < deadline:
            assert victim.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
        victim.send_signal(signal.SIGKILL)
    jobs, rows = _count(data / "gatehouse.sqlite3")
    assert wanted <= jobs == rows < 20_000
    subprocess.run(command, env=environment, check=True)
    assert _count(data / "gatehouse.sqlite3") == (20_000, 20_000)


def test_a_cluster_of_its_own_name_is_made_on_first_use(sent):
    accept(many(1), cluster="new-cluster")
    assert Cluster.objects.filter(name="new-cluster").exists()


def test_the_audit_names_who_sent_a_batch_not_the_worker(sent):
    service = ServiceAccount.objects.create(name="ada")
    person = factories.make_user("ada")
    person.is_research_computing = True
    person.save()
    senders = [
        Actor(ref=ActorRef("service", str(service.pk), "ada"), service=service, scopes=frozenset({"ingest:jobs"})),
        actor_for_user(person),
        SYSTEM_ACTOR,
    ]
    for number, actor in enumerate(senders, start=1):
        body = text(job_row(number))
        batch = services.accept_upload(actor=actor, cluster_name="aster", body=body, format="sacct")
        assert services.run_batch(batch.pk)
    told = AuditEvent.objects.filter(verb="ingest.jobs").order_by("pk")
    assert list(told.values_list("actor_kind", "actor_id", "actor_label")) == [
        (actor.ref.kind, actor.ref.id, actor.ref.label) for actor in senders
    ]


def test_the_audit_names_a_sender_whose_row_is_gone(sent):
    service = ServiceAccount.objects.create(name="reader")
    ref = ActorRef("service", str(service.pk), "reader")
    actor = Actor(ref=ref, service=service, scopes=frozenset({"ingest:jobs"}))
    batch = services.accept_upload(actor=actor, cluster_name="aster", body=many(1), format="sacct")
    service.delete()
    assert services.run_batch(batch.pk)
    told = AuditEvent.objects.get(verb="ingest.jobs")
    assert (told.actor_kind, told.actor_id, told.actor_label) == ("service", ref.id, "reader")


def test_batches_from_before_senders_were_kept_find_theirs(cast: Cast):
    migration = importlib.import_module("telemetry.migrations.0007_batch_sender")
    service = ServiceAccount.objects.create(name="pi")
    made = {
        name: IngestBatch.objects.create(cluster=cast.cluster, format="sacct", source="api", sent_by=name)
        for name in ("pi", "colleague", "gatehouse", "left")
    }
    migration.fill_senders(apps, None)
    found = {name: IngestBatch.objects.get(pk=batch.pk).sender for name, batch in made.items()}
    assert found == {
        "pi": ActorRef("service", str(service.pk), "pi"),
        "colleague": ActorRef("user", str(cast.colleague.pk), "colleague"),
        "gatehouse": ActorRef("system", "gatehouse", "gatehouse"),
        "left": ActorRef("system", "gatehouse", "left"),
    }

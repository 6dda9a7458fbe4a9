"""Ingest in the caller's process: the command and the service under it."""

import contextlib
import io
import os
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db.models import QuerySet

from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent, LiveEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, ServiceAccount, SlurmAccount
from telemetry import services
from telemetry.engine.slurm.records import JobRecord
from telemetry.models import IngestBatch, IngestSource, Job, QuarantinedRow, RollupDay, RollupDirty
from telemetry.services.ingest import running
from tests import factories
from tests.conftest import SHARED_DATA
from tests.telemetry.engine.test_read_xdmod import GOOD as XDMOD
from tests.telemetry.logs import counts, facts, ingest, iso, job_row, live_row, many, stream_records, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.mark.shared_data
def test_the_reference_log_comes_in_whole_and_a_second_time_changes_nothing(capsys: pytest.CaptureFixture[str]):
    path = str(SHARED_DATA / "xdmod" / "phillips.log")
    call_command("ingest_jobs", path, cluster="phillips", format="xdmod")
    assert Job.objects.count() == 4285
    assert Job.objects.filter(start=None).count() == 239
    assert Job.objects.filter(start=None, node_list="None assigned").count() == 239
    cluster = Cluster.objects.get(name="phillips")
    before = facts(cluster)
    days = RollupDay.objects.count()
    call_command("ingest_jobs", path, cluster="phillips", format="xdmod")
    first, second = IngestBatch.objects.order_by("pk")
    assert (counts(first), counts(second)) == ({"created": 4285}, {"duplicate": 4285})
    assert facts(cluster) == before
    assert days and RollupDay.objects.count() == days and not RollupDirty.objects.exists()
    # In this form the lab is the group column, not the account.
    job = Job.objects.select_related("lab", "account").get(raw_id=163485)
    assert (job.lab.name, job.account and job.account.name) == ("chaff", "chaff")
    assert "known already 4285" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [True, False], ids=["in columns", "row by row"])
def test_a_file_that_becomes_shorter_while_it_is_read_does_not_pass_for_whole(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: bool
) -> None:
    monkeypatch.setattr(running, "MANY_BYTES", 0 if columns else 10**9)
    monkeypatch.setattr(running, "BLOCK_ROWS", {"sqlite": 2500, "postgresql": 2500})
    path, body = tmp_path / "jobs.sacct", many(9000)
    path.write_bytes(body)
    cut: list[int] = []

    def shorten(_: object) -> None:
        if not cut:
            os.truncate(path, len(body) - 1000)
            cut.append(1)

    def load() -> IngestBatch:
        with path.open("rb") as stream:
            return services.ingest_file(
                actor=SYSTEM_ACTOR, cluster=cluster, stream=stream, format="sacct", progress=shorten
            )

    first = load()
    assert (first.state, "became shorter" in first.error) == (IngestBatch.State.FAILED, True)
    assert 0 < Job.objects.count() < 9000
    path.write_bytes(body)
    assert load().state == IngestBatch.State.DONE
    assert Job.objects.count() == 9000
    assert not QuarantinedRow.objects.exists()


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "cluster"), [("pyslurm-25.11.2-jobs/sacct.json", "demo"), ("slurm-24.11.5/sacct.json", "labl24")]
)
def test_a_dump_in_json_comes_in_whole_and_a_second_time_changes_nothing(name: str, cluster: str):
    path = str(SHARED_DATA / "slurm" / name)
    for _ in range(2):
        call_command("ingest_jobs", path, cluster=cluster, format="sacct-json")
    first, second = IngestBatch.objects.order_by("pk")
    jobs = Job.objects.count()
    assert jobs > 5 and not first.rejected_rows
    assert (counts(first)["created"], counts(second)["duplicate"]) == (jobs, jobs)


def test_a_job_keeps_what_sacct_said_and_its_unknown_columns(cluster: Cluster):
    columns = [*text().decode().strip().split("|"), "Wibble"]
    line = job_row(7, Comment="campaign=dock") + "|blue"
    batch = ingest(cluster, ("|".join(columns) + "\n" + line + "\n").encode())
    job = Job.objects.select_related("lab", "account", "cluster_user").get()
    assert counts(batch) == {"created": 1}
    assert (job.cluster_user.login, job.lab.name, job.gpus, job.cpus) == ("ada", "chem", 2, 8)
    assert job.extra == {"Wibble": "blue", "Comment": "campaign=dock", "gpu_types": ["a100"], "campaign": "dock"}
    assert job.campaign == "dock"
    assert (job.actor, job.actor_method) == ("unknown", "none")


def test_a_live_state_never_replaces_an_ended_one(cluster: Cluster):
    old, new = live_row(1, "RUNNING"), live_row(1, "COMPLETED")
    submit = dict(zip(text().decode().strip().split("|"), new.split("|"), strict=True))["Submit"]
    old = live_row(1, "RUNNING", Submit=submit)
    assert counts(ingest(cluster, text(new))) == {"created": 1}
    assert counts(ingest(cluster, text(old))) == {"late": 1}
    assert Job.objects.get().state == "COMPLETED"


def test_rows_of_one_chunk_with_one_key_are_judged_in_order(cluster: Cluster):
    running = job_row(1, State="RUNNING", End="Unknown", Elapsed="00:10:00")
    batch = ingest(cluster, text(running, running, job_row(1), running))
    assert counts(batch) == {"created": 1, "duplicate": 1, "updated": 1, "late": 1}
    assert Job.objects.get().state == "COMPLETED"


def test_a_recycled_job_id_is_another_job(cluster: Cluster):
    batch = ingest(cluster, text(job_row(1), job_row(1, Submit="2026-07-01T10:01:00")))
    assert counts(batch) == {"created": 2}


def test_a_job_that_moves_to_another_user_marks_the_days_of_both(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    ingest(cluster, text(job_row(1)))
    monkeypatch.setattr("telemetry.services.rollups.catch_up", lambda **_: True)
    ingest(cluster, text(job_row(1, User="bob")))
    marked = {login for login in RollupDirty.objects.values_list("cluster_user__login", flat=True)}
    assert marked == {"ada", "bob"}


def test_secrets_are_redacted_before_anything_is_stored(cluster: Cluster):
    secret = "hunter2hunter2"
    line = job_row(1, SubmitLine=f"sbatch --export=DB_PASSWORD={secret} run.sh")
    bad = job_row(2, State="NO SUCH STATE", SubmitLine=f"curl -u ada:{secret} https://x.example")
    batch = ingest(cluster, text(line, bad))
    assert counts(batch) == {"created": 1, "rejected": 1}
    assert batch.redactions >= 2
    kept = Job.objects.get()
    stored = [kept.submit_line, str(kept.extra), *QuarantinedRow.objects.values_list("raw", flat=True)]
    assert not [each for each in stored if secret in each]
    assert "[REDACTED:" in kept.submit_line
    # Sending the same again is still the same: the digest is that of what is stored.
    assert counts(ingest(cluster, text(line))) == {"duplicate": 1}


def test_recent_changes_are_told_and_history_is_not(cluster: Cluster):
    ingest(cluster, text(job_row(1), live_row(2, "PENDING")))
    told = LiveEvent.objects.get()
    user = Job.objects.get(raw_id=2).cluster_user_id
    lab = Job.objects.get(raw_id=2).lab_id
    assert told.name == "job.submitted"
    assert told.topics == ["job:aster:2", f"user-jobs:{user}", f"lab-jobs:{lab}", "all-jobs:aster"]
    submit = iso(60)
    ingest(cluster, text(live_row(3, "FAILED", Submit=submit, ExitCode="3:0")))
    ended = LiveEvent.objects.get(name="job.ended")
    assert ended.payload["outcome"] == "failed, exit code 3"
    assert (ended.payload["user"], ended.payload["lab"], ended.payload["old_state"]) == ("ada", "chem", None)


def test_an_event_says_enough_to_act(cluster: Cluster):
    line = "sbatch -o /w/%j.out job.sh"
    ingest(cluster, text(live_row(7, "TIMEOUT", SubmitLine=line, NodeList="n[1-2]", Timelimit="01:00:00")))
    told = LiveEvent.objects.get().payload
    wanted = {
        "outcome": "reached its time limit", "node_list": "n[1-2]", "stdout": "/w/7.out", "stderr": "", "waits_for": "",
        "hint": "It had 1 h. Ask for more time (--time), or let it write and read checkpoints.",
        "page": "http://127.0.0.1:8000/jobs/aster/7/", "api": "http://127.0.0.1:8000/api/v1/jobs/aster/7",
    }  # fmt: skip
    assert {name: told[name] for name in wanted} == wanted


def test_one_audit_row_a_batch_and_the_source_is_noted(cluster: Cluster):
    batch = ingest(cluster, many(50), source="nightly")
    event = AuditEvent.objects.get(verb="ingest.jobs")
    assert (event.object_id, event.payload["after"]["created"]) == (str(batch.public_id), 50)
    source = IngestSource.objects.get()
    assert source.name == "nightly" and source.last_received and source.last_record_at


def test_a_stream_is_heard_while_its_batch_is_open(cluster: Cluster):
    stream = services.RecordStream(actor=SYSTEM_ACTOR, cluster=cluster, source="reader")
    stream.write([JobRecord(1, "1", "ada", "PENDING", 1_750_000_000, account="chem")])
    source = IngestSource.objects.get(name="reader")
    assert stream.batch and stream.batch.state == IngestBatch.State.RUNNING
    assert source.last_received and source.last_record_at and source.last_record_at.timestamp() == 1_750_000_000
    stream.close()


def test_steps_are_counted_apart(cluster: Cluster):
    step = job_row(1, JobID="1.batch", JobIDRaw="1.batch", User="")
    assert counts(ingest(cluster, text(job_row(1), step))) == {"created": 1, "step": 1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (text(job_row(1)) + job_row(2)[:40].encode(), "truncated_last_line"),
        (text(job_row(1), job_row(2, Submit="2099-01-01T00:00:00")), "future_date"),
        (text(job_row(1)) + b"x" * 10_000_000 + b"\n", "line_too_long"),
        (text(job_row(1)) + job_row(2).replace("COMPLETED", "C\xffD").encode("latin-1") + b"\n", "invalid_utf8"),
        (text(job_row(1)) + b"\0\1\2|\n", "binary_data"),
        (text(job_row(1), job_row(2, NNodes="99999999999")), "out_of_range"),
        (text(job_row(1), job_row(2, User="u" * 65)), "out_of_range"),
    ],
)
def test_a_bad_row_is_set_aside_with_its_reason_and_the_rest_is_taken(cluster: Cluster, body: bytes, reason: str):
    batch = ingest(cluster, body)
    assert batch.state == "done"
    assert counts(batch) == {"created": 1, "rejected": 1}
    kept = QuarantinedRow.objects.get()
    assert kept.reason == reason and len(kept.raw) <= 2000 and "\0" not in kept.raw


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "nothing in this file"),
        (b"\x7fELF\0\0\1\2" * 100, "not text"),
        (b"JobID|User\n1|ada\n", "TZ=UTC sacct"),
    ],
)
def test_a_file_of_another_form_fails_with_what_to_do(cluster: Cluster, tmp_path: Path, body: bytes, words: str):
    (tmp_path / "log").write_bytes(body)
    with pytest.raises(CommandError, match=words):
        call_command("ingest_jobs", str(tmp_path / "log"), cluster="aster")
    assert IngestBatch.objects.get().state == "failed"
    assert not Job.objects.exists()


def test_an_empty_file_of_the_headerless_form_is_an_error_too(cluster: Cluster):
    assert "nothing" in ingest(cluster, b"", format="xdmod").error


def test_a_missing_file_is_one_clear_sentence(db: None):
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("ingest_jobs", "/nowhere/log", cluster="aster")


def test_standard_input_is_read_once(db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    class Stdin:
        buffer = Pipe(text(job_row(1)))

    monkeypatch.setattr("sys.stdin", Stdin())
    call_command("ingest_jobs", "-", cluster="aster")
    assert Job.objects.count() == 1
    assert "standard input: 1 record\n" in capsys.readouterr().out


def test_records_of_a_reader_take_the_same_path(cluster: Cluster):
    record = JobRecord(1, "1", "ada", "PENDING", 1_750_000_000, account="chem", campaign="dock")
    for expected in ({"created": 1}, {"duplicate": 1}):
        batch = stream_records(cluster, [record], source="reader")
        assert counts(batch) == expected and batch.state == "done"
    assert Job.objects.get().campaign == "dock"


def test_who_may_not_feed_is_refused(cluster: Cluster):
    outsider = factories.actor_of(factories.make_user("someone"))
    with pytest.raises(NotAllowed):
        services.RecordStream(actor=outsider, cluster=cluster, source="x")
    with pytest.raises(Invalid, match="no format"):
        services.ingest_file(actor=SYSTEM_ACTOR, cluster=cluster, stream=io.BytesIO(b"x"), format="csv")


def test_names_of_a_chunk_that_was_rolled_back_are_made_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr("telemetry.services.ingest.rows.write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ingest(cluster, text(job_row(1)))
    assert not SlurmAccount.objects.filter(name="chem").exists()
    assert counts(ingest(cluster, text(job_row(1)))) == {"created": 1}


def test_a_chunk_costs_a_fixed_number_of_queries(cluster: Cluster, django_assert_max_num_queries, monkeypatch):
    monkeypatch.setattr("telemetry.services.rollups.catch_up", lambda **_: True)
    ingest(cluster, many(500))  # names
    with django_assert_max_num_queries(60):
        ingest(cluster, many(1500, seed=2))


def of_clusters(*names: str) -> bytes:
    """A log with the column Cluster: one job a name."""
    header = text().decode().strip() + "|Cluster"
    rows = [f"{job_row(number)}|{name}" for number, name in enumerate(names, start=1)]
    return "\n".join([header, *rows, ""]).encode()


def test_records_of_another_cluster_are_set_aside_and_told_where_they_belong(cluster: Cluster):
    batch = ingest(cluster, of_clusters("aster", "ASTER", "", "borage"))
    assert counts(batch) == {"created": 3, "rejected": 1}
    kept = QuarantinedRow.objects.get()
    assert kept.reason == "other_cluster"
    assert kept.detail == (
        "The record is of cluster borage, not of aster. Send it again for cluster borage, or leave the Cluster column "
        "out."
    )
    assert kept.raw == "job 4 (JobIDRaw 4) of ada, COMPLETED, submitted 2026-07-01T10:00:00 UTC"
    assert set(Job.objects.values_list("raw_id", flat=True)) == {1, 2, 3}
    assert services.describe_others(batch) == []


@pytest.mark.parametrize(
    "name", ["\u212aestrel", "k\u0435strel", "\uff4bestrel", "kestrel\u200b", "kestrel ", "../kestrel"]
)
def test_a_name_that_only_looks_like_the_clusters_is_another(name: str):
    batch = ingest(factories.make_cluster("kestrel"), of_clusters(name, "Kestrel"))
    assert counts(batch) == {"created": 1, "rejected": 1}


def test_what_an_odd_name_would_do_to_a_terminal_is_shown_as_text(cluster: Cluster):
    ingest(cluster, of_clusters("\x1b[2Jgone"))
    assert "of cluster \\x1b[2Jgone, not of aster" in QuarantinedRow.objects.get().detail


def test_a_cluster_named_in_another_case_is_the_same(cluster: Cluster):
    assert services.require_cluster(SYSTEM_ACTOR, "jobs", "ASTER") == cluster
    assert Cluster.objects.count() == 1


def test_the_database_keeps_a_name_in_two_cases_out_whoever_was_first(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    # As if the other one had been made between the look and the write.
    monkeypatch.setattr(QuerySet, "first", lambda self: None)

    assert services.require_cluster(SYSTEM_ACTOR, "jobs", "Aster") == cluster


def test_a_command_that_names_a_known_cluster_in_another_case_makes_and_takes_back_nothing(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "log").write_bytes(b"nothing of ours")
    with pytest.raises(CommandError):
        call_command("ingest_jobs", str(tmp_path / "log"), cluster="ASTER")
    assert "new cluster" not in capsys.readouterr().err
    assert list(Cluster.objects.all()) == [cluster]


def test_a_file_of_another_cluster_is_refused_whole_and_plainly(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "log").write_bytes(of_clusters("borage", "borage", "clover"))
    with pytest.raises(CommandError, match="nothing was stored, for every record is of another cluster") as caught:
        call_command("ingest_jobs", str(tmp_path / "log"), cluster="aster")
    assert "Send it again for cluster borage" in str(caught.value)
    assert "Send it again for cluster clover" in str(caught.value)
    assert "set aside for: other_cluster 3" in capsys.readouterr().out
    assert not Job.objects.exists()


def test_a_batch_refused_for_several_reasons_is_not_said_to_be_of_another_cluster(cluster: Cluster):
    body = of_clusters("borage", "aster").replace(b"|aster\n", b"|aster|too|many|values\n")
    batch = ingest(cluster, body)
    assert counts(batch) == {"rejected": 2}
    assert services.describe_others(batch) == []


@pytest.mark.parametrize(
    "body",
    [
        None,  # no such file
        b"",
        b"JobID|User\n1|ada\n",
        text(),  # a header alone
        of_clusters("borage", "clover"),
    ],
)
def test_a_mistyped_cluster_leaves_nothing_behind(db: None, tmp_path: Path, body: bytes | None):
    if body is not None:
        (tmp_path / "log").write_bytes(body)
    with contextlib.suppress(CommandError):
        call_command("ingest_jobs", str(tmp_path / "log"), cluster="astre")
    assert not Cluster.objects.exists() and not IngestBatch.objects.exists() and not IngestSource.objects.exists()


def test_a_new_cluster_stays_where_a_file_before_the_bad_one_was_stored(db: None, tmp_path: Path):
    (tmp_path / "log").write_bytes(many(2))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("ingest_jobs", str(tmp_path / "log"), str(tmp_path / "missing"), cluster="aster")
    assert Job.objects.filter(cluster__name="aster").count() == 2


def test_a_new_cluster_stays_where_records_were_set_aside_for_their_own_faults(db: None, tmp_path: Path):
    (tmp_path / "log").write_bytes(text(job_row(1, State="WHAT")))
    call_command("ingest_jobs", str(tmp_path / "log"), cluster="aster")
    assert QuarantinedRow.objects.get().batch.cluster.name == "aster"


def test_a_known_cluster_stays_though_it_is_empty(cluster: Cluster, tmp_path: Path):
    (tmp_path / "log").write_bytes(b"")
    with pytest.raises(CommandError):
        call_command("ingest_jobs", str(tmp_path / "log"), cluster="aster")
    assert Cluster.objects.get() == cluster


def test_a_cluster_that_something_refers_to_is_not_withdrawn(cluster: Cluster):
    bound = ServiceAccount.objects.create(name="reader", cluster=cluster)
    assert not services.withdraw_cluster(actor=SYSTEM_ACTOR, cluster=cluster)
    bound.delete()
    assert services.withdraw_cluster(actor=SYSTEM_ACTOR, cluster=cluster)
    assert AuditEvent.objects.get(verb="cluster.withdraw").object_label == "aster"


@pytest.mark.parametrize("format", ["xdmod", "records"])
def test_a_record_that_is_refused_is_said_to_stand_where_it_stood(cluster: Cluster, format: str):
    records = [JobRecord(number, str(number), user, "COMPLETED", 1_782_900_000, end_s=1_782_900_000, account="lab")
               for number, user in enumerate(("ada", "x" * 70, "ada", "y" * 70), start=1)]  # fmt: skip
    if format == "records":
        stream_records(cluster, records)
    else:
        good = XDMOD.replace("|hill|", "|aster|") + "\n"
        ingest(cluster, "".join(good.replace("noror", each.user) for each in records).encode(), format="xdmod")
    assert list(QuarantinedRow.objects.order_by("line").values_list("line", flat=True)) == [2, 4]


def test_a_cluster_that_a_reader_reads_is_not_withdrawn(cluster: Cluster):
    with services.hold_reader(actor=SYSTEM_ACTOR, cluster=cluster, source=services.Commands()) as reader:
        assert reader is not None and not services.withdraw_cluster(actor=SYSTEM_ACTOR, cluster=cluster)
    assert services.withdraw_cluster(actor=SYSTEM_ACTOR, cluster=cluster)


def test_whoever_comes_while_a_cluster_is_withdrawn_is_told_to_send_it_again(cluster: Cluster):
    found = Cluster.objects.get()
    assert services.withdraw_cluster(actor=SYSTEM_ACTOR, cluster=cluster)
    with pytest.raises(Conflict, match="was taken back"):
        ingest(found, many(1))
    assert not IngestBatch.objects.exists()


RUNS = {"State": "RUNNING", "End": "Unknown"}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"Start": "0001-01-01T00:00:00"}, "past_date"),
        ({"Start": "1970-01-01T00:00:00"}, "past_date"),
        ({"Start": "1969-12-31T19:00:00"}, "past_date"),
        ({"Submit": "0001-01-01T00:00:00"}, "past_date"),
        (RUNS | {"Elapsed": "99999999-00:00:00"}, "future_date"),
        ({"Elapsed": "99999999-00:00:00"}, "out_of_range"),
        ({"State": "CANCELLED", "Start": "Unknown", "Elapsed": "99999999-00:00:00"}, "out_of_range"),
    ],
)
def test_a_time_that_cannot_be_is_set_aside_and_costs_no_thousands_of_days(
    cluster: Cluster, values: dict[str, str], reason: str
):
    batch = ingest(cluster, text(job_row(1, **values), job_row(2)))
    assert counts(batch) == {"created": 1, "rejected": 1}
    assert QuarantinedRow.objects.get().reason == reason


def test_a_job_that_never_started_may_have_an_odd_start(cluster: Cluster):
    row = job_row(1, State="CANCELLED", Start="1970-01-01T00:00:00", Elapsed="00:00:00", NodeList="None assigned")
    assert counts(ingest(cluster, text(row))) == {"created": 1}

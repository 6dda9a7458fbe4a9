"""The reader's pace and memory, with commands that are scripts: a real Slurm is in tests/slurm."""

import threading
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.core import clock
from portal.core.errors import NotFound
from portal.core.models import Lease
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry.models import IngestBatch, Job, QuarantinedRow, RollupDay, SchedulerCalls, SlurmReader
from telemetry.selectors.scheduler import busiest_callers
from telemetry.services import Commands, Reader, SlurmUnavailable, hold_reader, serve, sweep
from telemetry.services.reader.reader import OVERLAP, ReaderStopped
from telemetry.services.reader.service import Pace, _pause_s
from tests import factories
from tests.telemetry.engine.sacct_texts import COLUMNS
from tests.telemetry.logs import CONFIG, job_row, text

pytestmark = pytest.mark.django_db
DAY = datetime(2026, 7, 2, tzinfo=UTC)


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    """Print what stands in the files `queue` and `accounting`, note what was asked, fail where there is none."""
    for name, file in (("squeue", "queue"), ("sacct", "accounting"), ("sdiag", "counters"), ("scontrol", "config")):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/asked\nexec cat {tmp_path}/{file}\n')
        script.chmod(0o755)
    # An old squeue, which does not know every field that is printed again.
    unknown = 'echo "squeue: error: Invalid job format specification: qos" >&2'
    squeue = (
        (tmp_path / "squeue").read_text().replace("exec", f'case "$*" in *states=all*) {unknown}; exit 0;; esac\nexec')
    )
    (tmp_path / "squeue").write_text(squeue)
    (tmp_path / "config").write_text(CONFIG)
    (tmp_path / "queue").write_text("")
    (tmp_path / "accounting").write_bytes(text())
    return Commands(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}, can_print=False)


def asked(folder: Path) -> list[str]:
    found = (folder / "asked").read_text().splitlines()
    (folder / "asked").unlink()
    return found


def test_it_asks_accounting_about_what_changed_until_that_knows(
    cluster: Cluster, commands: Commands, tmp_path: Path
) -> None:
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    (tmp_path / "queue").write_text("7|RUNNING|0|\n")
    assert reader.look() == 1
    assert [line.split(" --format")[0] for line in asked(tmp_path)[1:]] == ["sacct --duplicates --parsable2 --jobs 7"]
    assert SlurmReader.objects.get().unsettled == 1  # accounting had nothing yet
    running = job_row(7, State="RUNNING", End="Unknown")
    (tmp_path / "accounting").write_bytes(text(running))
    assert (reader.look(), reader.look()) == (1, 0)
    assert Job.objects.get().state == "RUNNING"
    (tmp_path / "queue").write_text("")
    assert reader.look() == 1
    (tmp_path / "accounting").write_bytes(text(job_row(7)))
    assert (reader.look(), reader.look()) == (1, 0)
    assert (Job.objects.get().state, SlurmReader.objects.get().unsettled) == ("COMPLETED", 0)


def test_a_squeue_that_does_not_know_a_field_is_asked_as_before(
    cluster: Cluster, commands: Commands, tmp_path: Path
) -> None:
    commands.can_print = True
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    (tmp_path / "queue").write_text("7|RUNNING|0|\n")
    assert (reader.look(), commands.texts, commands.can_print) == (1, None, False)
    assert SlurmReader.objects.get().calls == 3  # squeue twice, accounting
    reader.look()
    assert SlurmReader.objects.get().calls == 3 + 2


def test_what_accounting_never_knows_is_not_asked_for_ever(
    cluster: Cluster, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telemetry.services.reader.reader.PATIENCE", 3)
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    (tmp_path / "queue").write_text("7|RUNNING|0|\n")
    assert [reader.look() for _ in range(6)] == [1, 1, 1, 1, 0, 0]
    assert SlurmReader.objects.get().given_up == 1


def test_many_jobs_are_asked_about_in_parts(cluster: Cluster, commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "queue").write_text("".join(f"{number}|PENDING|0|\n" for number in range(1, 1202)))
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    assert reader.look() == 1201
    assert len(asked(tmp_path)) == 1 + 3
    assert SlurmReader.objects.get().calls == 4


def test_a_long_sweep_is_cut_and_goes_on_where_it_was_interrupted(
    cluster: Cluster, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    between, calls = commands.account_between, count(1)
    with monkeypatch.context() as patch:
        patch.setattr(
            commands, "account_between", lambda *span, now_s: between(*span, now_s=now_s) if next(calls) < 20 else 1 / 0
        )
        with pytest.raises(ZeroDivisionError):
            reader.sweep()
    assert len(asked(tmp_path)) == 19  # of a day and the overlap, an hour each
    until = SlurmReader.objects.get().swept_until
    assert until is not None
    Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands).sweep()
    rest = asked(tmp_path)
    assert f"--starttime {until - OVERLAP:%Y-%m-%dT%H:%M:%S} " in rest[0]
    assert len(rest) == 6 + 43  # the newest first, then the rest of the last two days
    SlurmReader.objects.update(swept_until=until)
    Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands).sweep()
    rest = asked(tmp_path)
    assert f"--starttime {until - OVERLAP:%Y-%m-%dT%H:%M:%S} " in rest[0]
    assert len(rest) == 6


def sdiag(since_s: int, **calls: int) -> str:
    users = "".join(f"\t{user:<16}( 1001) count:{n:<6} ave_time:9   total_time:{n * 9}\n" for user, n in calls.items())
    return f"Data since now ({since_s})\n\nRemote Procedure Call statistics by user\n{users}\nPending RPC statistics\n"


def test_calls_are_summed_from_counters_that_start_anew_now_and_then(
    cluster: Cluster, commands: Commands, tmp_path: Path
) -> None:
    def count(text: str) -> int:
        (tmp_path / "counters").write_text(text)
        # Each time a reader that knows no more than what is stored.
        return Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands).count()

    looks = (sdiag(5, ada=100), sdiag(5, ada=104, bob=3), sdiag(5, ada=104, bob=3), sdiag(9, ada=2))
    assert [count(look) for look in looks] == [0, 7, 0, 2]
    sums = SchedulerCalls.objects.values_list("cluster_user__login", "calls", "busy_us")
    assert sorted(sums) == [("ada", 6, 54), ("bob", 3, 27)]


def test_who_asked_most_stands_beside_what_they_submitted(cluster: Cluster) -> None:
    lab, today = factories.make_lab(), DAY.date()
    for login, calls, actor in (("ada", 30, "agent"), ("bob", 90, "human"), ("eve", 1, "")):
        user = factories.make_cluster_user(cluster, factories.make_user(login))
        for day in (today, today - timedelta(days=1), today - timedelta(days=2)):
            SchedulerCalls.objects.create(
                cluster=cluster, day=day, cluster_user=user, calls=calls, busy_us=calls * 2000
            )
        if actor:
            RollupDay.objects.create(
                cluster=cluster, day=today, cluster_user=user, lab=lab, actor=actor, submissions=20
            )
    callers = busiest_callers(first=today - timedelta(days=1), last=today, limit=3)
    assert [(c.login, c.calls, c.calls_per_submission, c.runs_agents, c.mean_ms) for c in callers] == [
        ("bob", 180, 9.0, False, 2.0), ("ada", 60, 3.0, True, 2.0), ("eve", 2, None, False, 2.0)
    ]  # fmt: skip
    assert [c.login for c in busiest_callers(first=today, last=today, limit=1)] == ["bob"]


def test_what_was_set_aside_is_told_once(cluster: Cluster, commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "queue").write_text("7|RUNNING|0|\n")
    elsewhere = job_row(8, columns=(*COLUMNS, "Cluster"), Cluster="borealis")
    (tmp_path / "accounting").write_bytes(text(job_row(7, Submit="yesterday")))
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    assert [reader.look() for _ in range(4)] == [1] * 4
    (tmp_path / "accounting").write_bytes(text(elsewhere, columns=(*COLUMNS, "Cluster")))
    assert [reader.look() for _ in range(4)] == [1] * 4
    assert sorted(QuarantinedRow.objects.values_list("reason", flat=True)) == ["bad_time", "other_cluster"]


def test_a_batch_stays_open_while_nothing_changes(
    cluster: Cluster, commands: Commands, tmp_path: Path, time_machine: Any
) -> None:
    time_machine.move_to(DAY, tick=False)
    (tmp_path / "queue").write_text("7|RUNNING|0|\n")
    (tmp_path / "accounting").write_bytes(text(job_row(7, State="RUNNING", End="Unknown")))
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    reader.look()
    for _ in range(10):
        time_machine.shift(30)
        reader.look()
        sweep()
    assert [batch.state for batch in IngestBatch.objects.all()] == ["running"]
    reader.close()
    assert [batch.state for batch in IngestBatch.objects.all()] == ["done"]


def test_a_batch_stays_open_during_a_long_sweep_that_brings_nothing(
    cluster: Cluster, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time_machine: Any
) -> None:
    time_machine.move_to(DAY, tick=False)
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    (tmp_path / "queue").write_text("7|RUNNING|0|\n")
    (tmp_path / "accounting").write_bytes(text(job_row(7, State="RUNNING", End="Unknown")))
    reader.look()

    def slow(*span: datetime, now_s: int) -> list[Any]:
        time_machine.shift(40)
        sweep()  # a worker's, of batches
        return []

    monkeypatch.setattr(commands, "account_between", slow)
    reader.sweep()
    assert IngestBatch.objects.get().state == "running"


def test_a_reader_that_lost_its_lease_stops_before_the_next_call(
    cluster: Cluster, commands: Commands, tmp_path: Path
) -> None:
    going = iter([True, True, False])
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands, goes_on=lambda: next(going))
    with pytest.raises(ReaderStopped):
        reader.sweep()
    assert len(asked(tmp_path)) == 2


def test_it_leaves_a_slow_slurm_in_peace() -> None:
    pace = Pace(look_s=5, sweep_s=300)
    assert _pause_s(pace, took_s=0.1, failures=0) == 5
    assert _pause_s(pace, took_s=2, failures=0) == pytest.approx(18)
    assert _pause_s(pace, took_s=0.5, owed_s=10, failures=0) == pytest.approx(14.5)
    assert [_pause_s(pace, took_s=0, failures=count) for count in (1, 2, 9)] == [10, 20, 60]


def test_what_went_wrong_is_noted_until_it_works_again(cluster: Cluster, commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "queue").write_text("slurm_load_jobs error\n")
    stop, said = threading.Event(), list[str]()

    def say(words: str) -> None:
        said.append(words)
        if "Trying again" in words:
            stop.set()

    pace = Pace(look_s=0.01, sweep_s=300)
    serve(actor=SYSTEM_ACTOR, cluster=cluster, source=commands, pace=pace, stop=stop, say=say)
    assert said == ["Reading aster.", "squeue printed what is no queue: 'slurm_load_jobs error'. Trying again."]
    assert SlurmReader.objects.get().problem.startswith("squeue printed what is no queue")
    (tmp_path / "queue").write_text("")
    Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands).look()
    assert SlurmReader.objects.get().problem == ""


def test_the_command_looks_sweeps_and_counts_once(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queue").write_text("7|RUNNING|0|\n")
    (tmp_path / "accounting").write_bytes(text(job_row(7)))
    (tmp_path / "counters").write_text(sdiag(5))
    monkeypatch.setenv("PATH", commands.environment["PATH"])
    call_command("slurm_reader", "--cluster", "aster", "--once")
    assert capsys.readouterr().out == "1 job in the queue, 1 asked about, 1 unsettled.\n"
    assert Job.objects.get().state == "COMPLETED"
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CommandError, match="has no scontrol"):
        call_command("slurm_reader", "--cluster", "aster", "--once")
    row = SlurmReader.objects.get()
    assert "has no scontrol" in row.problem and f"tried {clock.now().astimezone(UTC):%Y-%m-%d}" in row.problem
    with pytest.raises(CommandError, match="--every is a second or more"):
        call_command("slurm_reader", "--cluster", "aster", "--every", "0.1")


def test_a_first_try_that_fails_leaves_a_row_that_says_why_and_when(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CommandError, match="has no scontrol"):
        call_command("slurm_reader", "--cluster", "aster", "--once")
    row = SlurmReader.objects.get()
    assert row.problem.startswith("This host has no scontrol.") and row.problem.endswith(" UTC)")
    assert "Install Slurm's client commands." in row.problem


def test_the_command_leaves_a_cluster_alone_that_another_reader_reads(
    cluster: Cluster, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", commands.environment["PATH"])
    with (
        hold_reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands),
        pytest.raises(CommandError, match="Another reader reads aster"),
    ):
        call_command("slurm_reader", "--cluster", "aster", "--once")
    assert not (tmp_path / "asked").exists()


def test_a_reader_that_stood_by_says_that_its_cluster_was_withdrawn(
    cluster: Cluster, commands: Commands, tmp_path: Path
) -> None:
    Cluster.objects.filter(pk=cluster.pk).delete()  # the reader before it met another Slurm
    with pytest.raises(NotFound, match="aster is gone") as caught:
        serve(actor=SYSTEM_ACTOR, cluster=cluster, source=commands, pace=Pace(), stop=threading.Event(), say=print)
    assert "other reader" in caught.value.remedy and not (tmp_path / "asked").exists()
    assert not Lease.objects.exists()


def test_a_mistyped_cluster_of_which_nothing_was_read_does_not_stay(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CommandError, match="has no scontrol"):
        call_command("slurm_reader", "--cluster", "astre", "--once")
    assert not Cluster.objects.exists() and "was not kept" in capsys.readouterr().err


def test_a_slurm_of_another_name_is_refused_before_anything_of_it_is_stored(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", commands.environment["PATH"])
    monkeypatch.setattr("telemetry.management.commands.slurm_reader._ended_by_signals", threading.Event)
    for options in (("--once",), ()):
        with pytest.raises(CommandError, match="is aster, not astre"):
            call_command("slurm_reader", "--cluster", "astre", *options)
        assert [line.split()[0] for line in asked(tmp_path)] == ["scontrol"]
        assert not Cluster.objects.exists() and "was not kept" in capsys.readouterr().err


def test_a_name_of_slurm_in_another_case_is_no_other_name(cluster: Cluster, commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(CONFIG.replace("aster", "ASTER"))
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)
    reader.meet()
    assert (reader.is_met, reader.slurm_name) == (True, "ASTER")


def test_a_cluster_that_the_portal_calls_otherwise_is_read_under_its_own_name(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", commands.environment["PATH"])
    columns = (*COLUMNS, "Cluster")
    own, other = (job_row(number, columns=columns, Cluster=name) for number, name in ((7, "aster"), (8, "borealis")))
    (tmp_path / "accounting").write_bytes(text(own, other, columns=columns))
    (tmp_path / "counters").write_text(sdiag(5))
    call_command("slurm_reader", "--cluster", "ours", "--slurm-name", "aster", "--once")
    assert [(job.raw_id, job.cluster.name) for job in Job.objects.all()] == [(7, "ours")]
    assert [row.reason for row in QuarantinedRow.objects.all()] == ["other_cluster"]
    with pytest.raises(CommandError, match="is aster, not borealis"):
        call_command("slurm_reader", "--cluster", "ours", "--slurm-name", "borealis", "--once")


@pytest.mark.parametrize(
    ("complaint", "code", "remedy"),
    [
        ("squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
         "squeue: fatal: Could not establish a configuration source", "slurm_unconfigured", "slurm.conf in /etc/slurm"),
        ("squeue: error: Munge encode failed: Failed to access socket", "slurm_not_trusted", "munged runs"),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", "slurm_unreachable", "ping"),
        ("Slurm accounting storage is disabled", "slurm_without_accounting", "AccountingStorageType"),
        ("squeue: error: something new", "slurm_unavailable", "Look at slurmctld"),
    ],
)  # fmt: skip
def test_a_complaint_of_slurm_comes_with_what_to_do(
    commands: Commands, tmp_path: Path, complaint: str, code: str, remedy: str
) -> None:
    (tmp_path / "complaint").write_text(complaint)
    (tmp_path / "squeue").write_text(f"#!/bin/sh\ncat {tmp_path}/complaint >&2\nexit 1\n")
    with pytest.raises(SlurmUnavailable) as caught:
        commands.look()
    assert caught.value.code == code and remedy in caught.value.remedy
    assert caught.value.detail.count("squeue") == 1 and "\n" not in caught.value.detail


def test_a_reader_that_goes_on_says_what_to_do_too(cluster: Cluster, commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\necho 'Could not establish a configuration source' >&2\nexit 1\n")
    said: list[str] = []
    stop = threading.Event()

    def say(words: str) -> None:
        said.append(words)
        if "Trying again" in words:
            stop.set()

    serve(actor=SYSTEM_ACTOR, cluster=cluster, source=commands, pace=Pace(0.01, 1), stop=stop, say=say)
    assert "slurm.conf in /etc/slurm" in said[-1]
    assert "slurm.conf in /etc/slurm" in SlurmReader.objects.get().problem

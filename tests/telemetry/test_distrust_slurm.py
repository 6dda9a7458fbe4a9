"""What Slurm's commands may do to a reader: hang, flood, fail, print secrets or nonsense. It says so and goes on."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.core.errors import DomainError
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, ClusterUser
from telemetry.engine.slurm.errors import FormatError
from telemetry.models import Job, SchedulerCalls, SlurmReader
from telemetry.services import Commands, Reader, serve
from telemetry.services.reader.service import Pace
from tests import factories
from tests.telemetry.logs import CONFIG, job_row, text

pytestmark = pytest.mark.django_db
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
SDIAG = "Data since now (5)\n\nRemote Procedure Call statistics by user\n{}\nPending RPC statistics\n"
Fake = Callable[..., Commands]


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """Make commands of which some are what a shell script says; the others print what a quiet Slurm does."""

    def make(**scripts: str) -> Commands:
        (tmp_path / "header").write_bytes(text())
        (tmp_path / "config").write_text(CONFIG)
        usual = {
            "scontrol": f"cat {tmp_path}/config",
            "squeue": "",
            "sacct": f"cat {tmp_path}/header",
            "sdiag": f"printf '{SDIAG.format('')}'",
        }
        for name, body in (usual | scripts).items():
            script = tmp_path / name
            script.write_text(f"#!/bin/sh\n{body}\n")
            script.chmod(0o755)
        return Commands(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}, timeout_s=20, can_print=False)

    return make


def read_with(cluster: Cluster, commands: Commands) -> list[str]:
    """Serve until the first look is over, well or not; return what the reader said."""
    stop, said = threading.Event(), list[str]()

    def say(words: str) -> None:
        said.append(words)
        if "Trying again" in words:
            stop.set()

    commands_done = commands.count

    def count() -> Any:
        stop.set()
        return commands_done()

    commands.count = count  # type: ignore[method-assign]
    serve(actor=SYSTEM_ACTOR, cluster=cluster, source=commands, pace=Pace(look_s=0.01), stop=stop, say=say)
    return said


def test_one_that_hangs_is_ended_with_all_that_it_started(cluster: Cluster, fake: Fake, tmp_path: Path) -> None:
    commands = fake(squeue=f"sleep 600 & echo $! > {tmp_path}/child\nwait")
    commands.timeout_s = 1
    assert "squeue took more than 1 s." in read_with(cluster, commands)[1]
    child, deadline = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat"), time.monotonic() + 20
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "what it started still runs"
        time.sleep(0.05)


def test_one_that_closes_its_outputs_and_stays_is_ended(cluster: Cluster, fake: Fake) -> None:
    commands = fake(squeue="exec >&- 2>&-; sleep 600")
    commands.timeout_s = 1
    assert "squeue took more than 1 s." in read_with(cluster, commands)[1]


@pytest.mark.parametrize("where", ["1", "2"])
def test_one_that_never_stops_printing_is_ended(cluster: Cluster, fake: Fake, where: str) -> None:
    commands = fake(squeue=f"exec cat /dev/zero >&{where}")
    commands.most_bytes = 100_000
    assert "squeue printed more than 100000 bytes." in read_with(cluster, commands)[1]


def test_one_that_cannot_be_run_is_told(cluster: Cluster, fake: Fake, tmp_path: Path) -> None:
    commands = fake(scontrol=f"exec /bin/cat {tmp_path}/config")
    (tmp_path / "squeue").write_bytes(b"\x00\x01 no program")
    commands.environment["PATH"] = str(tmp_path)
    assert "squeue cannot be run: Exec format error." in read_with(cluster, commands)[1]


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("squeue", f"echo 'error: token {SECRET} is not valid' >&2; exit 1"),
        ("squeue", f"echo 'token={SECRET}'"),
        ("squeue", f"printf '7|RUNNING|%0150d {SECRET}'"),
        ("sdiag", f"""printf '{SDIAG.format(f"  token {SECRET}")}'"""),
    ],
)
def test_a_secret_in_what_went_wrong_is_neither_said_nor_kept(
    cluster: Cluster, fake: Fake, command: str, script: str
) -> None:
    said = " ".join(read_with(cluster, fake(**{command: script})))
    kept = SlurmReader.objects.get().problem
    assert kept and kept.rpartition(" (tried ")[0] in said
    assert SECRET[:12] not in said and "REDACTED" in said


def test_what_went_wrong_moves_no_cursor_and_is_one_line(cluster: Cluster, fake: Fake) -> None:
    said = read_with(cluster, fake(squeue="printf '\\033[2Jgone\\r\\007\\nsecond' >&2; exit 1"))
    assert said[1].startswith("squeue: \\x1b[2Jgone") and said[1].isprintable()


@pytest.mark.parametrize(
    "printed", ["\\377\\376\\000", "7", "7|RUNNING", "x|RUNNING|0|", "7|NO_STATE|0|", "1|RUNNING|x|"]
)
def test_a_queue_that_is_none_spoils_the_look_alone(cluster: Cluster, fake: Fake, printed: str) -> None:
    assert "Trying again." in " ".join(read_with(cluster, fake(squeue=f"printf '{printed}'")))


@pytest.mark.parametrize("command", ["squeue", "sacct"])
def test_an_empty_answer_with_a_warning_beside_it_empties_nothing(
    cluster: Cluster, fake: Fake, tmp_path: Path, command: str
) -> None:
    (tmp_path / "rows").write_bytes(text(job_row(7, State="RUNNING", End="Unknown")))
    told = {"squeue": "echo '7|RUNNING|0|'", "sacct": f"cat {tmp_path}/rows"}
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=fake(**told))
    assert (reader.look(), reader.unsettled) == (1, {})
    reader.source = fake(**told | {command: "echo 'slurm_load: warning: still starting' >&2"})  # and ends well
    ask = reader.look if command == "squeue" else reader.sweep
    with pytest.raises(DomainError, match="still starting"):
        ask()
    assert set(reader.queue) == {7} and SlurmReader.objects.get().swept_until is None
    assert Job.objects.get().state == "RUNNING"


def test_a_controller_that_came_back_from_an_older_state_ends_no_job(
    cluster: Cluster, fake: Fake, tmp_path: Path
) -> None:
    (tmp_path / "rows").write_bytes(text(job_row(7, State="RUNNING", End="Unknown")))
    told = {"squeue": "echo '7|RUNNING|0|'", "sacct": f"cat {tmp_path}/rows"}
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=fake(**told))
    reader.look()
    reader.source = fake(**told | {"squeue": ""})  # its state is of before the job
    assert [reader.look() for _ in range(3)] == [1, 1, 1]
    assert (Job.objects.get().state, set(reader.unsettled)) == ("RUNNING", {7}), "accounting has not said that it ended"
    reader.source = fake(**told)
    reader.look()
    assert (Job.objects.get().state, reader.unsettled) == ("RUNNING", {})


def test_an_id_that_slurm_gives_out_again_is_another_job_and_ends_the_first_as_accounting_says(
    cluster: Cluster, fake: Fake, tmp_path: Path
) -> None:
    first = job_row(7, State="RUNNING", End="Unknown")
    (tmp_path / "rows").write_bytes(text(first))
    told = {"squeue": "echo '7|RUNNING|0|'", "sacct": f"cat {tmp_path}/rows"}
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=fake(**told))
    reader.look()
    again = {"Submit": "2026-07-03T10:00:00", "Eligible": "2026-07-03T10:00:00", "User": "bob"}
    waits = job_row(7, State="PENDING", Start="Unknown", End="Unknown", Elapsed="00:00:00", **again)
    (tmp_path / "rows").write_bytes(text(job_row(7), waits))
    reader.source = fake(**told | {"squeue": "echo '7|PENDING|0|'"})
    reader.look()
    jobs = Job.objects.order_by("submit").values_list("cluster_user__login", "state")
    assert list(jobs) == [("ada", "COMPLETED"), ("bob", "PENDING")]


def test_accounting_with_other_columns_is_refused_and_binary_data_set_aside(cluster: Cluster, fake: Fake) -> None:
    said = read_with(cluster, fake(squeue="echo '7|RUNNING|0|'", sacct="printf 'A|B\\n1|2\\n'"))
    assert "Trying again." in said[1]
    assert not Job.objects.exists()
    assert read_with(cluster, fake(sacct="printf '\\000\\001\\002'"))[1].endswith("Trying again.")


def test_the_end_of_accounting_that_was_cut_off_is_no_record(cluster: Cluster, fake: Fake, tmp_path: Path) -> None:
    commands = fake(squeue="echo '7|RUNNING|0|'", sacct=f"head -c -20 {tmp_path}/rows")
    (tmp_path / "rows").write_bytes(text(job_row(7), job_row(8)))
    read_with(cluster, commands)
    assert set(Job.objects.values_list("raw_id", flat=True)) == {7}


def test_names_in_accounting_are_kept_as_they_are_and_secrets_are_not(
    cluster: Cluster, fake: Fake, tmp_path: Path
) -> None:
    commands = fake(squeue="echo '7|RUNNING|0|'", sacct=f"cat {tmp_path}/rows")
    (tmp_path / "rows").write_bytes(text(job_row(7, JobName="\x1b[2J<script>"), job_row(8, JobName=f"x {SECRET}")))
    read_with(cluster, commands)
    names = dict(Job.objects.values_list("raw_id", "job_name"))
    assert names[7] == "\x1b[2J<script>"
    assert SECRET not in names[8]


@pytest.mark.parametrize(
    "line",
    [
        f"  ada ( 7) count:{'9' * 30} ave_time:1 total_time:1",
        f"  ada ( 7) count:1 ave_time:1 total_time:{'9' * 30}",
        f"  {'a' * 65} ( 7) count:1 ave_time:1 total_time:1",
        "  a\033[2J ( 7) count:1 ave_time:1 total_time:1",
        "  ada",
    ],
)
def test_a_counter_that_no_row_can_hold_is_refused(cluster: Cluster, fake: Fake, line: str) -> None:
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=fake())
    reader.count()
    reader.source = fake(sdiag=f"cat <<'END'\n{SDIAG.format(line)}END")
    with pytest.raises((FormatError, DomainError)):
        reader.count()
    assert not ClusterUser.objects.exists() and not SchedulerCalls.objects.exists()


def test_once_what_is_no_queue_is_told_in_one_sentence(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(squeue="echo nonsense")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(CommandError, match="squeue printed what is no queue: 'nonsense'"):
        call_command("slurm_reader", "--cluster", "aster", "--once")


def test_a_clock_that_was_ahead_and_is_put_right_stops_no_sweep(
    cluster: Cluster, fake: Fake, time_machine: Any
) -> None:
    day = datetime(2026, 7, 2, tzinfo=UTC)
    time_machine.move_to(day + timedelta(days=400), tick=False)
    Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=fake()).sweep()
    time_machine.move_to(day, tick=False)
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=fake())
    reader.sweep()
    assert reader.row.calls == 48  # the two days back
    assert (reader.row.swept_until, reader.row.deep_swept) == (day, day)

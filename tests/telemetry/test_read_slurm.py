"""The reader's pace and memory, with commands that are scripts: a real Slurm is in tests/slurm."""

import threading
from itertools import count
from pathlib import Path

import pytest

from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster
from telemetry.models import Job, SlurmReader
from telemetry.services import Commands, Reader, serve
from telemetry.services.reader.reader import OVERLAP
from telemetry.services.reader.service import Pace, _pause_s
from tests import factories
from tests.telemetry.logs import job_row, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    """Print what stands in the files `queue` and `accounting`, note what was asked, fail where there is none."""
    for name, file in (("squeue", "queue"), ("sacct", "accounting")):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/asked\nexec cat {tmp_path}/{file}\n')
        script.chmod(0o755)
    (tmp_path / "queue").write_text("")
    (tmp_path / "accounting").write_bytes(text())
    return Commands(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})


def asked(folder: Path) -> list[str]:
    found = (folder / "asked").read_text().splitlines()
    (folder / "asked").unlink()
    return found


def test_it_asks_accounting_about_what_changed_until_that_knows(
    cluster: Cluster, commands: Commands, tmp_path: Path
) -> None:
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, commands=commands)
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


def test_what_accounting_never_knows_is_not_asked_for_ever(
    cluster: Cluster, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telemetry.services.reader.reader.PATIENCE", 3)
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, commands=commands)
    (tmp_path / "queue").write_text("7|RUNNING|0|\n")
    assert [reader.look() for _ in range(6)] == [1, 1, 1, 1, 0, 0]


def test_many_jobs_are_asked_about_in_parts(cluster: Cluster, commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "queue").write_text("".join(f"{number}|PENDING|0|\n" for number in range(1, 1202)))
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, commands=commands)
    assert reader.look() == 1201
    assert len(asked(tmp_path)) == 1 + 3
    assert SlurmReader.objects.get().calls == 4


def test_a_long_sweep_is_cut_and_goes_on_where_it_was_interrupted(
    cluster: Cluster, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cluster, commands=commands)
    between, calls = commands.account_between, count(1)
    with monkeypatch.context() as patch:
        patch.setattr(commands, "account_between", lambda *span: between(*span) if next(calls) < 20 else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reader.sweep()
    assert len(asked(tmp_path)) == 19  # of a day and the overlap, an hour each
    until = SlurmReader.objects.get().swept_until
    assert until is not None
    Reader(actor=SYSTEM_ACTOR, cluster=cluster, commands=commands).sweep()
    rest = asked(tmp_path)
    assert len(rest) == 48  # the last two days again, for none was swept whole today
    SlurmReader.objects.update(swept_until=until)
    Reader(actor=SYSTEM_ACTOR, cluster=cluster, commands=commands).sweep()
    rest = asked(tmp_path)
    assert f"--starttime {until - OVERLAP:%Y-%m-%dT%H:%M:%S} " in rest[0]
    assert len(rest) == 6


def test_it_leaves_a_slow_slurm_in_peace() -> None:
    pace = Pace(look_s=5, sweep_s=300)
    assert _pause_s(pace, took_s=0.1, failures=0) == 5
    assert _pause_s(pace, took_s=2, failures=0) == pytest.approx(18)
    assert [_pause_s(pace, took_s=0, failures=count) for count in (1, 2, 9)] == [10, 20, 60]


def test_what_went_wrong_is_noted_until_it_works_again(cluster: Cluster, commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "queue").write_text("slurm_load_jobs error\n")
    stop, said = threading.Event(), list[str]()

    def say(words: str) -> None:
        said.append(words)
        if "Trying again" in words:
            stop.set()

    pace = Pace(look_s=0.01, sweep_s=300)
    serve(actor=SYSTEM_ACTOR, cluster=cluster, commands=commands, pace=pace, stop=stop, say=say)
    assert said == ["Reading aster.", "squeue printed what is no queue: 'slurm_load_jobs error'. Trying again."]
    assert SlurmReader.objects.get().problem.startswith("squeue printed what is no queue")
    (tmp_path / "queue").write_text("")
    Reader(actor=SYSTEM_ACTOR, cluster=cluster, commands=commands).look()
    assert SlurmReader.objects.get().problem == ""

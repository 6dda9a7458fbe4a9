"""`manage.py run`, which is what `make run` starts: it comes up, says where it is, and stops losing nothing."""

import os
import shlex
import signal
import socket
import sqlite3
import stat
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from portal.management.commands.run import Command
from tests.support import demo
from tests.support.capabilities import ROOT
from tests.support.services import free_port

pytestmark = [pytest.mark.outside, pytest.mark.one_database]

_SAY_FOLDER = "from django.conf import settings; print(settings.DATA_DIR)"


def rows(data, query, *values):
    with closing(sqlite3.connect(data / "gatehouse.sqlite3", timeout=30)) as database:
        return database.execute(query, values).fetchall()


def is_alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended and waits to be collected does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_it_is_ready_says_so_keeps_the_demo_moving_and_stops_on_ctrl_c(demo_copy):
    with demo.portal(demo_copy) as portal:
        portal.wait_for(portal.ready_line)
        portal.wait_for("u0398      PI of Okafor Lab")
        with urllib.request.urlopen(f"{portal.url}/readyz") as answer:
            assert answer.status == 200
        portal.wait_for("is moving")
        assert set(portal.children()) == {"web", "worker", "simulator"}
        family = portal.family()
        portal.end(signal.SIGINT)
        assert portal.process.returncode == 0
        assert portal.said.endswith("Stopped; nothing was lost.\n")
        assert "Traceback" not in portal.said
        assert not [pid for pid in family if is_alive(pid)]


def test_ctrl_c_in_a_terminal_reaches_the_whole_group_and_does_no_harm(demo_copy):
    with demo.portal(demo_copy, DEMO="0") as portal:
        portal.wait_for(portal.ready_line)
        assert "The data there are a demo’s" in portal.said  # it was asked to start empty
        os.killpg(portal.process.pid, signal.SIGINT)
        assert portal.process.wait(30) == 0
        assert "Traceback" not in portal.said


def test_an_empty_start_makes_secrets_that_only_their_owner_reads(tmp_path):
    data = tmp_path / "new folder" / "var"
    with demo.portal(data, DEMO="0") as portal:
        portal.wait_for(portal.ready_line)
        assert "Started empty." in portal.said
        portal.wait_for("Nobody can sign in yet. The first person:")
        assert set(portal.children()) == {"web", "worker"}
        for name in ("secret_key", "token_pepper"):
            assert stat.S_IMODE((data / name).stat().st_mode) == 0o600
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        second = demo.manage(data, "run", check=False, PORT=str(free_port()))
        assert (second.returncode, "Another portal runs on" in second.stderr) == (1, True)
        assert rows(data, "SELECT count(*) FROM principals_user") == [(0,)]
        portal.end()
        assert "Demo logins" not in portal.said  # all of it has been said now


def test_a_child_that_is_killed_comes_back_alone(demo_copy):
    with demo.portal(demo_copy, DEMO="0") as portal:
        portal.wait_for(portal.ready_line)
        before = portal.children()
        portal.wait_until(lambda: len(portal.family()) == 3, "beat to run")  # web, worker and the worker's beat
        beat = (portal.family() - set(before.values())).pop()
        os.kill(before["worker"], signal.SIGKILL)
        portal.wait_for("worker ended with status -9; starting it again.")
        portal.wait_until(lambda: portal.children().get("worker") not in (None, before["worker"]), "a new worker")
        assert not is_alive(beat)  # else two would send every task
        os.kill(before["web"], signal.SIGKILL)
        portal.wait_for("web ended with status -9; starting it again.")
        portal.wait_until(lambda: _answers(portal.url), "web to answer again")


@pytest.mark.parametrize("first", [[], ["worker"], ["web"]])
def test_children_end_with_a_supervisor_that_is_killed(demo_copy, first):
    with demo.portal(demo_copy, DEMO="0") as portal:
        portal.wait_for(portal.ready_line)
        portal.wait_until(lambda: len(portal.family()) == 3, "beat to run")
        family, children = portal.family(), portal.children()
        for name in first:
            os.kill(children[name], signal.SIGKILL)
        portal.process.kill()
        portal.process.wait()
        deadline = time.monotonic() + 60
        while alive := [pid for pid in family if is_alive(pid)]:
            assert time.monotonic() < deadline, f"still alive: {alive}"
            time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5):
            return True
    except OSError:
        return False


def test_a_second_start_changes_no_row_of_the_demo(demo_copy):
    counts = [
        f"SELECT count(*) FROM {table}"  # noqa: S608
        for table in ("telemetry_job", "principals_user", "principals_agent", "telemetry_rollupday")
    ]
    before = [rows(demo_copy, query) for query in counts]
    with demo.portal(demo_copy, DEMO="0") as portal:
        portal.wait_for(portal.ready_line)
        portal.end()
    assert [rows(demo_copy, query) for query in counts] == before


def test_a_port_that_is_none_is_told_in_one_sentence(demo_copy):
    ran = demo.manage(demo_copy, "run", check=False, PORT="eighty")
    assert ran.returncode == 1
    assert ran.stderr == "CommandError: PORT is 'eighty'; it must be a number from 1 to 65535.\n"


@pytest.mark.parametrize("port", ["0", "65536", "eighty", "-1", "80a", "²", "8000 "])
def test_what_is_no_port_is_refused(monkeypatch, port):
    monkeypatch.setenv("PORT", port)
    with pytest.raises(CommandError, match="a number from 1 to 65535"):
        Command()._port()


def test_a_port_that_is_taken_is_told_with_another(demo_copy):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = demo.manage(demo_copy, "run", check=False, PORT=str(port), DEMO="0")
    assert ran.returncode == 1
    assert f"Cannot listen at 127.0.0.1:{port}" in ran.stderr
    assert f"Try GATEHOUSE_DATA={shlex.quote(str(demo_copy))} DEMO=0 PORT=" in ran.stderr
    assert ran.stderr.endswith(" make run\n")
    assert ran.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_used_is_told_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    ran = demo.manage(tmp_path / "file" / "var", "run", check=False)
    assert ran.returncode == 1
    assert ran.stderr == (
        f"Error: The data folder {tmp_path / 'file' / 'var'} cannot be used: Not a directory. "
        "Point GATEHOUSE_DATA at a folder that you may write to.\n"
    )


@pytest.mark.parametrize("name", ["broker", "static"])
def test_a_file_where_a_folder_belongs_is_told_in_one_sentence(tmp_path, name):
    (tmp_path / name).write_text("")
    ran = demo.manage(tmp_path, "run", check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"Error: The data folder {tmp_path / name}")
    assert ran.stderr.count("\n") == 1


def test_a_lock_that_cannot_be_taken_is_told_in_one_sentence(tmp_path):
    (tmp_path / "run.lock").mkdir()
    ran = demo.manage(tmp_path, "run", check=False, PORT=str(free_port()))
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"CommandError: Cannot lock {tmp_path / 'run.lock'} (Is a directory).")
    assert ran.stderr.count("\n") == 1


def test_a_folder_of_any_name_holds_its_database(tmp_path):
    name = "a#b?c=d%20e+f é"
    demo.manage(tmp_path / name, "migrate", "contenttypes", "0001", "--verbosity", "0")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "gatehouse.sqlite3").exists()


def test_a_folder_that_others_may_read_is_named(tmp_path):
    tmp_path.chmod(0o755)
    with demo.portal(tmp_path, DEMO="0") as portal:
        portal.wait_for(f"Other users of this host may look into it; forbid it with: chmod 700 '{tmp_path}'")


def test_an_empty_name_of_the_folder_means_the_usual_one(tmp_path):
    ran = demo.manage(tmp_path, "shell", "--no-imports", "-c", _SAY_FOLDER, GATEHOUSE_DATA="", LOG_LEVEL="ERROR")
    assert Path(ran.stdout.strip()) == ROOT / "var"


def test_a_database_that_is_none_is_told_in_one_sentence(tmp_path):
    (tmp_path / "gatehouse.sqlite3").write_bytes(b"no database at all\n" * 400)
    ran = demo.manage(tmp_path, "run", check=False, PORT=str(demo.free_port()))
    assert ran.returncode == 1
    assert "file is not a database" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_it_is_for_the_embedded_profile_only(tmp_path):
    ran = demo.manage(
        tmp_path, "run", check=False, GATEHOUSE_PROFILE="services", SECRET_KEY="s" * 40, TOKEN_PEPPERS="1:" + "p" * 40,
        DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3",
    )  # fmt: skip
    assert ran.returncode == 1
    assert "embedded profile" in ran.stderr

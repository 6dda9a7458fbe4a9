"""Real processes are found where they work: in a job that somebody collects for, and over SSH without a terminal."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.cli.collect.config import Config
from portal.cli.collect.in_job import Job
from portal.cli.collect.running import Run
from telemetry.engine.collector.facts import Exited, Forked, Key
from telemetry.engine.collector.watch import Watch
from tests.collector.test_run import ROOT, Portal, command, end, run_agent, write_config

JOB = 77
NOBODY = 65534
NEEDLE = "n33dle"
AGENT = """\
#!{python}
import subprocess
for each in ("sleep 0.6", "grep -r needle /etc/hostname", "sleep 0.6"):
    subprocess.run(each.split())
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="root alone becomes somebody, or is a server")


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="gatehouse-where-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def rows(bodies: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each for body in bodies for each in body[name]]


def can_run_as_nobody() -> bool:
    ran = subprocess.run(["setpriv", f"--reuid={NOBODY}", "--clear-groups", "test", "-x", sys.executable], check=False)
    return ran.returncode == 0


@as_root
@pytest.mark.parametrize("who", ["the job's person", "root, for the job's person"])
def test_a_job_s_collector_sees_that_job_alone_and_leaves_nothing_behind(
    portal: Portal, folder: Path, who: str
) -> None:
    if not can_run_as_nobody():
        pytest.skip("This interpreter is root's alone.")
    is_root = who.startswith("root")
    spool = {"spool": str(folder / "spool")} if is_root else {"spool": "/var/lib/gatehouse-collect"}
    config = write_config(folder, portal, **spool)
    uid = 0 if is_root else NOBODY
    os.chown(folder / "token", uid, uid)
    claude = folder / "claude"
    claude.write_text(AGENT.format(python=sys.executable))
    claude.chmod(0o755)
    environment = {
        "SLURM_JOB_ID": str(JOB), "SLURM_JOB_UID": str(NOBODY), "TMPDIR": str(folder), "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    process = subprocess.Popen(
        command("--config", str(config), "--in-job"), cwd=ROOT, env=environment, user=uid, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stderr is not None and "for this job alone" in process.stderr.readline()
    place = folder / "spool/job-77" if is_root else folder / f"gatehouse-collect-{NOBODY}-{JOB}"
    assert place.is_dir()
    theirs = subprocess.Popen([claude], user=NOBODY)
    (folder / "other").mkdir()
    run_agent(folder / "other")  # root's own is none of the job's
    theirs.wait()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 0
    bodies = [json.loads(body) for _, body in portal.taken]
    [session] = {json.dumps(each | {"end": 0, "last": 0}, sort_keys=True) for each in rows(bodies, "sessions")}
    told = json.loads(session)
    assert (told["harness"], told["place"], told["job"], told["user"]) == ("claude-code", "job", JOB, "nobody")
    assert {each.get("place", "") for each in rows(bodies, "minutes") if not each["session"]} <= {"job"}
    assert not place.exists()


@as_root
def test_one_alone_collects_for_a_job(portal: Portal, folder: Path) -> None:
    config = write_config(folder, portal, spool=str(folder))
    environment = os.environ | {"SLURM_JOB_ID": str(JOB), "SLURM_JOB_UID": str(NOBODY)}
    given = command("--config", str(config), "--in-job")
    first = subprocess.Popen(given, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None and "Collecting:" in first.stderr.readline()
    again = subprocess.run(given, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30, check=False)
    first.terminate()
    assert end(first)[0] == 0
    assert again.returncode == 2 and "[already_running]" in again.stderr


@pytest.mark.parametrize(("is_ours", "ends"), [(True, True), (False, False)])
def test_it_ends_once_it_was_alone_for_two_minutes_on_end(is_ours: bool, ends: bool) -> None:
    watch = Watch(began_s=0, boot_s=0, ticks_s=100, key=b"x", apart_s=30)
    run = Run(Config(cluster="aster"), watch, lambda batch: None, job=Job(JOB, NOBODY, is_ours))
    others = [Forked(0, 1, Key(pid, pid)) for pid in (10, 11, 12)]
    stopped = []
    for number, minute in enumerate(((), others, (), (), ()), 1):
        for fact in minute or [Exited(0, 12)]:
            watch.take(fact)
        run._close(number * 60, number * 60 + 5)
        stopped.append(run._is_stopped)
    assert stopped == [False, False, False, ends, ends]


@pytest.mark.parametrize("environment", [{}, {"SLURM_JOB_ID": ""}, {"SLURM_JOB_ID": "7_1"}, {"SLURM_JOB_ID": "0"}])
def test_outside_a_job_it_says_so(environment: dict[str, str]) -> None:
    ran = subprocess.run(
        command("--dry-run", "--in-job"), cwd=ROOT, env=os.environ | environment, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert ran.returncode == 2 and "[no_job]" in ran.stderr and "Traceback" not in ran.stderr


@as_root
def test_a_folder_that_somebody_else_made_is_not_used(portal: Portal, folder: Path) -> None:
    config = write_config(folder, portal, spool=str(folder))
    (folder / f"job-{JOB}").mkdir(mode=0o777)
    ran = subprocess.run(
        command("--config", str(config), "--in-job"), cwd=ROOT,
        env=os.environ | {"SLURM_JOB_ID": str(JOB), "SLURM_JOB_UID": "0"}, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 2 and "[spool_unusable]" in ran.stderr


@as_root
@pytest.mark.parametrize("environment", [False, True])
def test_over_ssh_is_a_place_and_a_marked_connection_an_agent_s_where_the_site_allows_a_look(
    folder: Path, environment: bool
) -> None:
    config = folder / "collect.toml"
    config.write_text(
        f'portal = "http://127.0.0.1:9"\ncluster = "aster"\nuser = "nobody"\nenvironment = {str(environment).lower()}\n'
    )
    process = subprocess.Popen(
        command("--dry-run", "--json", "--seconds", "3600", "--config", str(config)), cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    begun = process.stderr.readline()
    assert "Collecting:" in begun and ("looked into" in begun) == environment
    # A server by its name: what it starts is in a session of its own, as sshd's is, and has no terminal.
    server = folder / "sshd"
    shutil.copy("/bin/bash", server)
    for variables in ({}, {"CLAUDECODE": NEEDLE}):
        subprocess.run(
            [server, "-c", "setsid --wait bash -c 'sleep 0.4; sleep 0.4'; true"], env=os.environ | variables, check=True
        )
    time.sleep(0.5)
    process.terminate()
    said, errors = process.communicate(timeout=30)
    bodies = [json.loads(line) for line in said.splitlines()]
    sessions = {each["id"]: each for each in rows(bodies, "sessions") if each.get("place") == "ssh"}
    assert [each["harness"] for each in sessions.values()] == (["claude-code"] if environment else [])
    found: dict[str, int] = {}
    for each in rows(bodies, "minutes"):
        if each.get("place") == "ssh" or each["session"] in sessions:
            key = "marked" if each["session"] else each["driver"]
            found[key] = found.get(key, 0) + each["counts"].get("ssh_connection", 0)
    assert found == ({"unknown": 1, "marked": 1} if environment else {"unknown": 2})
    assert NEEDLE not in said + errors

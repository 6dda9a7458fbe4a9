"""Agents in jobs of a real Slurm are sessions in the job that they run in, by a node's collector and by a job's own."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.collector.test_run import ROOT, TOKEN, Portal, command
from tests.support.slurm import USERS, Slurm

pytestmark = pytest.mark.slurm

WRAPPER = ROOT / "deploy/slurm/gatehouse-collect-job"
AGENT = """\
#!{python}
import subprocess
for each in ("sleep 0.6", "grep -r needle /etc/hostname", "sleep 0.6"):
    subprocess.run(each.split())
"""


@pytest.fixture
def portal() -> Iterator[Portal]:
    made = Portal()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def claude(facility: Slurm) -> Path:
    path = facility.folder / "claude"
    path.write_text(AGENT.format(python=sys.executable))
    path.chmod(0o755)
    return path


def sessions(bodies: list[dict[str, Any]]) -> dict[int, set[tuple[str, str, str]]]:
    found: dict[int, set[tuple[str, str, str]]] = {}
    for body in bodies:
        for each in body["sessions"]:
            told = each["harness"], each["user"], each.get("place", "login")
            found.setdefault(each.get("job", 0), set()).add(told)
    return found


def test_a_node_s_collector_finds_the_job_of_a_headless_harness(facility: Slurm, claude: Path) -> None:
    if not facility.has_cgroups:
        pytest.skip("Without control groups a job's number is not told.")
    process = subprocess.Popen(
        command("--dry-run", "--json", "--seconds", "3600"), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None and "Collecting:" in process.stderr.readline()
        batch = facility.submit(script=f"{claude} -p x")
        steps = facility.submit("-n2", "--mem=100", script=f"srun {claude} exec x", user=USERS[1])
        # On the node where it was asked for an allocation's shell is in no job; what it sends there by srun is.
        held = facility.run("salloc", "-n1", "--mem=50", "sh", "-c", f"{claude} a; srun {claude} b; echo $SLURM_JOB_ID")
        facility.wait_for(batch, "COMPLETED")
        facility.wait_for(steps, "COMPLETED")
        time.sleep(0.5)
    finally:
        process.terminate()
        said, _ = process.communicate(timeout=30)
    found = sessions([json.loads(line) for line in said.splitlines()])
    assert found[batch] == {("claude-code", USERS[0], "job")}
    assert ("claude-code", "root", "login") in found[0]
    assert found[int(held.split()[-1])] == {("claude-code", "root", "job")}
    assert found[steps] == {("claude-code", USERS[1], "job")}
    assert "needle" not in said


def test_a_job_s_own_collector_needs_no_rights_and_sends_when_the_job_ends(
    facility: Slurm, claude: Path, portal: Portal
) -> None:
    folder = facility.folder / "own"
    folder.mkdir()
    (folder / "token").write_text(f"{TOKEN}\n")
    (folder / "collect.toml").write_text(
        f'portal = "http://127.0.0.1:{portal.server.server_port}"\ncluster = "aster"\n'
        f'token_file = "{folder}/token"\nspool = "{folder}"\n'
    )
    program = folder / "gatehouse"
    program.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m portal.cli.main "$@"\n')
    program.chmod(0o755)
    subprocess.run(["chown", "-R", f"{USERS[0]}:", folder], check=True)
    (folder / "token").chmod(0o600)
    environment = {"GATEHOUSE_PROGRAM": str(program), "GATEHOUSE_COLLECT_CONFIG": str(folder / "collect.toml")}
    # It begins beside the command: what is there already when it looks first is found too.
    job = facility.submit(script=f"{WRAPPER} sh -c 'sleep 2; {claude} -p x'", environment=environment)
    facility.wait_for(job, "COMPLETED")
    found = sessions([json.loads(body) for _, body in portal.taken])
    assert found == {job: {("claude-code", USERS[0], "job")}}
    assert not list(folder.glob("job-*"))

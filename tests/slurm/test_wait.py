"""`gatehouse wait` on a real Slurm: through a portal and its reader, and by sacct alone where there is no portal."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.slurm.conftest import LONG
from tests.support.capabilities import ROOT
from tests.support.slurm import ACCOUNT, CLUSTER, USERS, Slurm
from tests.support.web import Web, serving

pytestmark = pytest.mark.slurm
PATIENCE_S = 90
SETUP = f"""
from tests import factories
from principals.models import SlurmAccount
owner, cluster = factories.make_user({USERS[0]!r}), factories.make_cluster({CLUSTER!r})
lab = factories.make_lab("okafor", pi=owner)
factories.make_cluster_user(cluster, owner)
SlurmAccount.objects.create(cluster=cluster, name={ACCOUNT!r}, lab=lab)
print(factories.make_token(factories.make_agent(lab, owner)))
"""


@dataclass
class Site:
    facility: Slurm
    web: Web
    token: str

    def wait(self, *arguments: object, url: str = "") -> "subprocess.Popen[str]":
        environment = self.facility.environment | {
            "PYTHONPATH": str(ROOT), "GATEHOUSE_URL": url or self.web.url, "GATEHOUSE_TOKEN": self.token,
        }  # fmt: skip
        command = [sys.executable, "-m", "portal.cli.main", "wait", "--json", *map(str, arguments)]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


@pytest.fixture(scope="module")
def site(facility: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A portal, and a reader that looks each second."""
    with serving(tmp_path_factory.mktemp("portal") / "var") as web:
        token = web.run(SETUP).strip()
        command = [sys.executable, "manage.py", "slurm_reader", "--cluster", CLUSTER, "--every", "1"]
        reader = subprocess.Popen(
            command, cwd=ROOT, env=web.environment | facility.environment, stderr=subprocess.DEVNULL
        )
        try:
            yield Site(facility, web, token)
        finally:
            reader.terminate()
            reader.wait(30)


def ended(wait: "subprocess.Popen[str]") -> tuple[int, list[str], list[str], str]:
    """The status, the states in their order, where they came from, and what stands on stderr."""
    try:
        out, said = wait.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        wait.kill()
        out, said = wait.communicate()
        pytest.fail(f"it waits and waits: {out}{said}")
    told = [json.loads(line) for line in out.splitlines()]
    return wait.returncode, [each["state"] for each in told], [each["from"] for each in told], said


@pytest.mark.parametrize(("script", "status", "state"), [("sleep 4", 0, "COMPLETED"), ("sleep 4; exit 3", 3, "FAILED")])
def test_a_job_is_waited_for_from_its_submission(site: Site, script: str, status: int, state: str) -> None:
    job = site.facility.submit(script=script)
    got, states, _, said = ended(site.wait(job))
    assert (got, states[-1]) == (status, state), (states, said)
    assert set(states) <= {"PENDING", "RUNNING", state} and len(set(states)) == len(states)
    assert ended(site.wait(job))[:2] == (status, [state])


def test_an_array_ends_with_the_worst_of_its_tasks(site: Site) -> None:
    job = site.facility.submit("--array=1-4%2", script="sleep 2; test $SLURM_ARRAY_TASK_ID != 3 || exit 5")
    whole, task = site.wait(job), site.wait(f"{job}_2")
    status, states, _, said = ended(whole)
    assert (status, states[-1]) == (5, "FAILED"), (states, said)
    assert (ended(task)[:1], ended(site.wait(f"{job}_3"))[0]) == ((0,), 5)


def test_a_job_that_is_cancelled_waiting_or_running_is_over(site: Site) -> None:
    for options, before in ((("--begin=now+1hour",), "PENDING"), ((), "RUNNING")):
        job = site.facility.submit(*options, script=LONG)
        site.facility.wait_for_queue(job, before)
        wait = site.wait(job)
        assert wait.stdout is not None
        first = json.loads(wait.stdout.readline())
        assert first["state"] in ("PENDING", before)
        site.facility.run("scancel", str(job))
        status, states, _, said = ended(wait)
        assert (status, states[-1]) == (201, "CANCELLED"), (states, said)


def test_without_the_portal_accounting_answers(site: Site) -> None:
    failed = site.facility.submit(script="exit 4")
    array = site.facility.submit("--array=1-2", script="true")
    site.facility.wait_for(failed, "FAILED")
    asked = ("sacct", "-X", "-n", "-P", "-o", "State", "-j", str(array))
    site.facility.wait_until(lambda: site.facility.run(*asked).split() == ["COMPLETED"] * 2, "the array")
    status, states, sources, said = ended(site.wait(failed, array, url="http://127.0.0.1:1"))
    assert (status, states, sources) == (4, ["FAILED", "COMPLETED"], ["sacct", "sacct"]), said
    assert "sacct is asked once a minute" in said

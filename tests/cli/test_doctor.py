"""`gatehouse doctor`: each lack is found and told with its fix, and nothing is changed."""

import fcntl
import json
import os
import socket
import time
from datetime import timedelta
from pathlib import Path

import pytest

from portal.cli.doctor import delivery, leftovers, look, observing, serving
from portal.cli.doctor.findings import Finding
from portal.cli.doctor.node import Node
from portal.cli.main import main
from portal.core import clock
from principals import services as principal_services
from principals.models import Hold
from telemetry.models import HookReport
from tests import factories
from tests.support.capabilities import ROOT
from tests.telemetry.engine.test_read_configuration import TEXT
from tests.telemetry.logs import ingest, live_row, text

database = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


def found(node: Node, *tiers: int) -> dict[str, Finding]:
    return {finding.code: finding for finding in look(node, tiers)}


@pytest.fixture
def programs(tmp_path: Path):
    """A folder to put programs into: each prints a text, or complains and fails."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def put(name: str, out: str = "", *, complaint: str = "") -> None:
        (tmp_path / f"{name}.out").write_text(out)
        ending = f"echo '{complaint}' >&2; exit 1" if complaint else "exit 0"
        program = folder / name
        program.write_text(f"#!/bin/sh\n/bin/cat {tmp_path}/{name}.out\n{ending}\n")
        program.chmod(0o755)

    return put


@pytest.fixture
def node(tmp_path: Path) -> Node:
    (tmp_path / "root").mkdir()
    return Node(tmp_path / "root", {"PATH": str(tmp_path / "bin"), "HOME": "/home/reed"})


def write(node: Node, name: str, text: str = "") -> Path:
    path = node.path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_node_without_slurm_is_told_what_it_lacks(node):
    seen = found(node, 0)
    assert seen["sacct"].state == "wrong"
    assert seen["sacct"].said == "sacct is not in PATH."
    assert "Install Slurm" in seen["sacct"].fix


def test_an_accounting_that_answers_is_counted(node, programs):
    programs("sacct", "12\n13\n")
    programs("scontrol", TEXT)
    seen = found(node, 0)
    assert (seen["sacct"].state, "2 of your jobs" in seen["sacct"].said) == ("ok", True)
    assert seen["private_data"].state == "ok"


@pytest.mark.parametrize("hiding", ["jobs", "accounts,jobs", "ALL"])
def test_a_site_that_hides_jobs_is_told_how_to_see_them(node, programs, hiding):
    programs("sacct", "12\n")
    programs("scontrol", TEXT.replace("PrivateData             = none", f"PrivateData             = {hiding}"))
    assert found(node, 0)["private_data"].state == "missing"


def test_slurm_s_own_command_is_asked_past_ours(node, programs, tmp_path):
    programs("sacct", "slurm 22.05.8\n")
    path = f"{ROOT}/deploy/agent-path:{tmp_path}/bin"
    assert found(Node(node.root, {"PATH": path}), 0)["sacct"].state == "ok"


def test_a_complaint_of_slurm_comes_with_its_remedy(node, programs):
    programs("sacct", complaint="sacct: error: Unable to contact slurmdbd")
    seen = found(node, 0)["sacct"]
    assert (seen.state, "slurmdbd run" in seen.fix) == ("wrong", True)


def test_the_controller_is_asked_once_for_all_tiers(node, programs, tmp_path):
    programs("sacct", "")
    programs("scontrol", TEXT)
    script = tmp_path / "bin" / "scontrol"
    script.write_text(script.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\necho x >> {tmp_path}/asked\n"))
    found(node, 0, 2, 4)
    assert (tmp_path / "asked").read_text() == "x\n"


@pytest.fixture
def portal(live_server, monkeypatch, tmp_path):
    monkeypatch.setenv("GATEHOUSE_URL", live_server.url)
    monkeypatch.setenv("GATEHOUSE_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.delenv("GATEHOUSE_TOKEN", raising=False)
    return live_server


class TestPortal:
    pytestmark = database

    def node(self) -> Node:
        return Node()

    def test_all_is_well(self, portal, cast, monkeypatch):
        monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
        seen = found(self.node(), 1)
        assert [seen[code].state for code in ("reach", "clock", "token")] == ["ok"] * 3
        assert "okafor-docking" in seen["token"].said
        assert seen["lacks_not_checked_in"].state == "missing"

    def test_a_token_that_is_missing(self, portal):
        seen = found(self.node(), 1)
        assert (seen["reach"].state, seen["token"].state) == ("ok", "wrong")

    def test_a_hold_is_told_with_its_remedy(self, portal, cast, monkeypatch):
        monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
        principal_services.place_hold(
            actor=factories.actor_of(cast.staff), subject_kind="agent", subject_id=cast.agent.pk,
            kind=Hold.Kind.CONTAINMENT, code="contained", reason="Stopped by staff.", remedy="Write to the desk.",
        )  # fmt: skip
        seen = found(self.node(), 1)["token"]
        assert (seen.state, seen.fix) == ("wrong", "Write to the desk.")

    def test_an_address_that_is_not_a_portal_s(self, portal, monkeypatch):
        monkeypatch.setenv("GATEHOUSE_URL", f"{portal.url}/nowhere")
        seen = found(self.node(), 1)
        assert (seen["reach"].state, "404" in seen["reach"].said) == ("wrong", True)

    def test_when_a_hook_was_heard(self, portal, cast, monkeypatch):
        monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
        assert delivery._heard(cast.cluster.name).state == "missing"
        report = {"kind": "jobcomp", "happened": "ended", "raw_id": 7, "outcome": HookReport.Outcome.KNOWN}
        HookReport.objects.create(cluster=cast.cluster, digest=1, fired=clock.now() - timedelta(minutes=9), **report)
        heard = delivery._heard(cast.cluster.name)
        assert (heard.state, "9 min ago" in heard.said) == ("ok", True)
        ingest(cast.cluster, text(live_row(8, "COMPLETED")))
        assert delivery._heard(cast.cluster.name).state == "missing"  # it ended, and nobody told

    def test_events_can_be_heard(self, portal, cast, monkeypatch, node):
        monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
        assert found(node, 2)["events"].state == "ok"


def test_a_portal_that_is_away(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("GATEHOUSE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        seen = found(Node(), 1)
    assert list(seen) == ["reach"]
    assert seen["reach"].state == "wrong"


@pytest.fixture
def no_portal(monkeypatch, tmp_path):
    monkeypatch.setenv("GATEHOUSE_TOKEN_FILE", str(tmp_path / "none"))
    monkeypatch.delenv("GATEHOUSE_TOKEN", raising=False)


def test_ways_to_slurm_that_are_shut(node, programs, no_portal):
    """No munged, no controller's port, and a harness's variable that says why."""
    with socket.socket() as taken:  # bound and not listening: refused
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        programs("scontrol", TEXT.replace("10.0.0.5", "127.0.0.1").replace("6817-6820", str(port)))
        shut_in = Node(node.root, {**node.environ, "CODEX_SANDBOX": "seatbelt"})
        seen = found(shut_in, 2)
    assert seen["munge"].state == seen["controller_port"].state == "wrong"
    assert "CODEX_SANDBOX" in seen["munge"].said
    assert seen["munge"].fix.startswith("Allow /run/other/munge.socket in the harness's sandbox")


def test_ways_to_slurm_that_are_open(node, programs, no_portal, monkeypatch):
    munge = node.path("/run/other/munge.socket")
    munge.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as munged, socket.socket() as controller:
        monkeypatch.chdir(munge.parent)  # the path of a Unix socket is short (unix(7))
        munged.bind("munge.socket")
        munged.listen()
        controller.bind(("127.0.0.1", 0))
        controller.listen()
        programs(
            "scontrol",
            TEXT.replace("10.0.0.5", "127.0.0.1").replace("6817-6820", str(controller.getsockname()[1])),
        )
        seen = found(node, 2)
    assert (seen["munge"].state, seen["controller_port"].state) == ("ok", "ok")
    assert seen["rate_limit"].state == "ok"


def test_hooks_of_the_controller(node, programs, no_portal):
    """As some releases print them, numbered: ours may stand behind another."""
    ours = TEXT.replace("EpilogSlurmctld[0] ", "EpilogSlurmctld[0] = /etc/slurm/own.sh\nEpilogSlurmctld[1] ")
    programs("scontrol", ours)
    write(node, serving.HOOKS_OFF)
    seen = found(node, 2)
    assert seen["hook_epilogslurmctld"].state == "ok"
    assert seen["hooks_off"].fix.startswith(f"rm {serving.HOOKS_OFF}") and "hooks" not in seen
    programs("scontrol", TEXT.replace("gatehouse-", "own-"))
    seen = found(Node(node.root, node.environ), 2)
    assert seen["hook_epilogslurmctld"].state == seen["hooks"].state == "missing"


def put_shims(folder: Path) -> str:
    folder.mkdir()
    for name in ("squeue", "sacct"):
        (folder / name).write_text(f'#!/bin/sh\nexec gatehouse {name} "$@"\n')
        (folder / name).chmod(0o755)
    return str(folder)


def test_whose_squeue_comes_first(node, programs, no_portal, tmp_path):
    ours, theirs = put_shims(tmp_path / "ours"), str(tmp_path / "bin")
    for name in ("squeue", "sacct"):
        programs(name)
    for path, state, fix in (
        (f"{ours}:{theirs}", "ok", ""), (f"{theirs}:{ours}", "missing", "In what starts agents"),
        (theirs, "missing", "In what starts agents"), (ours, "wrong", "Add the folder"),
    ):  # fmt: skip
        seen = found(Node(node.root, {"PATH": path}), 2)
        for name in ("path_squeue", "path_sacct"):
            assert (seen[name].state, seen[name].fix.startswith(fix)) == (state, True), path


@pytest.fixture
def spool(node, programs) -> Path:
    programs("scontrol", TEXT)
    folder = node.path("/var/spool/gatehouse-events")
    for name in ("new", "waiting", "bad"):
        (folder / name).mkdir(parents=True)
    (folder / ".lock").touch()
    return folder


def test_an_eventd_that_does_not_run(node, no_portal, spool):
    (spool / "new" / "jobcomp-7-1").touch()
    seen = found(node, 2)["eventd"]
    assert (seen.state, seen.said) == ("missing", "No eventd runs: 1 events lie in /var/spool/gatehouse-events.")
    assert seen.fix.startswith("systemctl enable --now gatehouse-eventd")


def test_an_eventd_that_runs_and_delivers_or_not(node, no_portal, spool):
    with (spool / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write(node, "/proc/locks", Path("/proc/locks").read_text())
    assert found(node, 2)["eventd"].state == "ok"
    old = spool / "waiting" / "jobcomp-7-1"
    old.touch()
    os.utime(old, (time.time() - 600, time.time() - 600))
    (spool / "bad" / "x").touch()
    seen = found(node, 2)
    assert (seen["eventd"].state, "the oldest for 10 min" in seen["eventd"].said) == ("missing", True)
    assert "1 events were set aside" in seen["eventd_bad"].said


def test_a_host_without_a_spool_says_nothing_of_eventd(node, programs, no_portal):
    programs("scontrol", TEXT)
    seen = found(node, 2)
    assert "eventd" not in seen and seen["hooks_heard"].state == "unknown"


@pytest.mark.parametrize(("mount", "state"), [("rw", "ok"), ("rw,hidepid=0", "ok"), ("rw,hidepid=2", "missing"),
                                              ("rw,hidepid=invisible,gid=5", "missing")])  # fmt: skip
def test_hidden_processes(node, mount, state):
    write(node, "/proc/mounts", f"tmpfs /run tmpfs rw 0 0\nproc /proc proc {mount} 0 0\n")
    assert found(node, 3)["hidepid"].state == state


def test_a_collector_that_is_off_or_without_settings(node):
    write(node, f"{observing.UNIT_FOLDERS[0]}/{observing.UNIT}")
    write(node, observing.KILL_FILE)
    seen = found(node, 3)
    assert seen["kill_file"].fix == f"rm {observing.KILL_FILE}"
    assert (seen["collector"].state, observing.CONFIG in seen["collector"].said) == ("wrong", True)


@pytest.mark.parametrize(("enforced", "state"), [("associations,limits,qos,safe", "ok"), ("associations", "missing"),
                                                 ("all", "ok"), ("(null)", "missing")])  # fmt: skip
def test_limits_that_bind_or_not(node, programs, enforced, state):
    programs("scontrol", TEXT.replace("associations,limits,qos,safe", enforced))
    assert found(node, 4)["limits"].state == state


class TestLeftovers:
    def test_a_clean_node_has_none(self, node):
        assert [each for each in leftovers.find(node) if "account" not in each.what] == []

    def test_each_is_listed_with_its_removal(self, node, programs):
        programs("scontrol", f"{TEXT}\nJobCompLoc = /etc/slurm/gatehouse-jobcomp.sh\n")
        write(node, "/opt/gatehouse/bin/gatehouse")
        write(node, "/etc/systemd/system/gatehouse-collect.service")
        write(node, "/var/lib/gatehouse-collect/spool/1")
        write(node, "/home/reed/.config/gatehouse/token")
        write(node, "/etc/slurm/job_submit.lua", 'dofile("/etc/slurm/gatehouse_label.lua")')
        listed = {each.what: each for each in leftovers.find(node)}
        assert listed["/home/reed/.config/gatehouse"].remove == "rm -r /home/reed/.config/gatehouse"
        assert listed["/etc/systemd/system/gatehouse-collect.service"].remove.startswith("systemctl disable --now")
        assert listed["/var/lib/gatehouse-collect"].tier == 3
        setting = listed["slurm.conf: epilogslurmctld[0] = /etc/slurm/gatehouse-epilog.sh"]
        assert (setting.tier, "scontrol reconfigure" in setting.remove) == (2, True)
        jobcomp = listed["slurm.conf: jobcomploc = /etc/slurm/gatehouse-jobcomp.sh"].remove
        assert "JobCompType" in jobcomp and "restart slurmctld" in jobcomp
        order = list(listed)  # what a unit runs goes after it
        assert order[0].startswith("/etc/slurm/job_submit.lua")
        assert order.index("/etc/systemd/system/gatehouse-collect.service") < order.index("/opt/gatehouse")

    def test_all_that_the_documentation_has_one_install_is_found(self, node):
        """Every file of deploy/ that goes somewhere below /etc, under the name that it has there."""
        kept = {"/etc/slurm/prolog.d": "prolog", "/etc/slurm/epilog.d": "epilog"}
        for file in (ROOT / "deploy").rglob("gatehouse*"):
            if file.is_file():
                folder = "/etc/slurm" if file.parent.name == "slurm" else "/etc/gatehouse"
                folder = next((place for place, sign in kept.items() if file.name == f"gatehouse-{sign}.sh"), folder)
                if file.parent.name == "systemd":
                    folder = leftovers.UNIT_FOLDER
                if file.parent.name == "sensors":
                    continue
                write(node, f"{folder}/{file.name}")
        left = {each.what for each in leftovers.find(node)}
        written = {f"/{path.relative_to(node.root)}" for path in node.root.rglob("*") if path.is_file()}
        assert written <= left

    def test_it_removes_nothing(self, capsys):
        assert main(["doctor", "--uninstall"]) == 2
        assert "removes nothing" in capsys.readouterr().err
        assert main(["doctor", "--uninstall", "--dry-run", "--json"]) == 0
        json.loads(capsys.readouterr().out)


def test_the_command_prints_lines_or_json(monkeypatch, no_portal, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["doctor", "--tier", "0"]) == 1
    assert "!! sacct is not in PATH." in capsys.readouterr().out
    assert main(["doctor", "--tier", "0", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["code"] == "sacct"

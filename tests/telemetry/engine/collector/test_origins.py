"""The job is told by the path of Slurm's control groups and by nothing that a user can make; of an environment the
names of agents' variables are told, and no value."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.collector import proc as proc_module
from telemetry.engine.collector.facts import Executed
from telemetry.engine.collector.frames import encode
from telemetry.engine.collector.origins import LARGEST_JOB, NO_JOB, NOT_ASKED, UNTOLD, job_of, marker_of
from telemetry.engine.collector.proc import Only, Proc

NAMES = (b"CODEX_CI", b"CLAUDECODE")
STAT = "{pid} (bash) S {parent} {group} {session} 0 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 9 0 0"


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_123/step_batch/user/task_0", 123),
        ("0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0", 123),
        ("0::/system.slice/slurmstepd.scope/job_123/step_extern/user/task_special", 123),
        ("0::/system.slice/slurmstepd.scope/job_123/step_interactive/slurm", 123),
        ("0::/system.slice/n1_slurmstepd.scope/job_7/step_1/user/task_3", 7),
        ("0::/../../system.slice/slurmstepd.scope/job_7/step_1", 7),
        ("0::/kubepods.slice/pod1.slice/system.slice/slurmstepd.scope/job_7/step_1/user/task_0", 7),
        ("0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0", UNTOLD),
        ("0::/system.slice/slurmstepd.scope/system", NO_JOB),
        ("0::/system.slice/slurmd.service", NO_JOB),
        ("11:memory:/slurm/uid_1000/job_8/step_0/task_0\n9:freezer:/slurm/uid_1000/job_8/step_0\n1:cpu:/", 8),
        ("9:freezer:/slurm_n1/uid_1000/job_8/step_extern\n1:name=systemd:/system.slice/slurmd.service", 8),
        ("4:cpuset,cpu:/docker/ab12/slurm/uid_0/job_9/step_batch", 9),
        ("0::/init.scope", NO_JOB), ("", NO_JOB), ("no lines at all", NO_JOB),
        # What somebody may name as he likes is below his own slice.
        ("0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_5/step_0", NO_JOB),
        ("0::/user.slice/user-1000.slice/user@1000.service/slurm/uid_1/job_5/step_0", NO_JOB),
        ("0::/user.slice/user-1000.slice/session-3.scope", NO_JOB),
        (f"0::/system.slice/slurmstepd.scope/job_{LARGEST_JOB}/step_0", LARGEST_JOB),
        (f"0::/system.slice/slurmstepd.scope/job_{LARGEST_JOB + 1}/step_0", UNTOLD),
        ("0::/system.slice/slurmstepd.scope/job_" + "9" * 5000, UNTOLD),
        ("0::/system.slice/slurmstepd.scope/job_0/step_0", UNTOLD),
    ],
)  # fmt: skip
def test_the_job_is_what_slurm_s_groups_say(text: str, job: int) -> None:
    assert job_of(text.encode()) == job


@given(st.binary(max_size=300))
def test_nothing_breaks_it(data: bytes) -> None:
    assert UNTOLD <= job_of(data) <= LARGEST_JOB and job_of(data) != NOT_ASKED
    assert 0 <= marker_of(data, NAMES) <= len(NAMES)


@pytest.mark.parametrize(
    ("environ", "place"),
    [(b"A=1\0CLAUDECODE=1\0", 2), (b"CLAUDECODE=\0CODEX_CI=x\0", 1), (b"A=CLAUDECODE=1\0XCODEX_CI=1\0", 0), (b"", 0)],
)
def test_a_variable_counts_by_its_whole_name(environ: bytes, place: int) -> None:
    assert marker_of(environ, NAMES) == place


class Folder:
    """A `/proc` of files, and which of them are opened."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.opened = path, list[str]()
        true_open = os.open

        def spy(path: str, *given: int, **named: int) -> int:
            self.opened.append(path)
            return true_open(path, *given, **named)

        monkeypatch.setattr(proc_module.os, "open", spy)

    def put(
        self, pid: int, *argv: str, group: int = 0, session: int = 0, cgroup: str = "0::/", environ: str = ""
    ) -> None:
        folder = self.path / str(pid)
        folder.mkdir(exist_ok=True)
        stat = STAT.format(pid=pid, parent=2, group=group, session=session)
        files = {"cmdline": "".join(f"{word}\0" for word in argv), "stat": stat, "cgroup": cgroup, "environ": environ}
        for name, text in files.items():
            (folder / name).write_text(text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return Folder(tmp_path, monkeypatch)


def test_of_those_that_lead_alone_more_is_read_and_once_for_each_program(folder: Folder) -> None:
    proc = Proc(folder.path)
    folder.put(70, "bash", group=7, session=7, cgroup="0::/system.slice/slurmstepd.scope/job_5/step_0")
    seen = proc.look(70)
    assert seen is not None and seen.job == NOT_ASKED and "cgroup" not in folder.opened
    folder.put(71, "bash", session=71, cgroup="0::/system.slice/slurmstepd.scope/job_5/step_0")
    for _ in range(3):
        seen = proc.look(71)
        assert seen is not None and seen.job == 5
    assert folder.opened.count("cgroup") == 1
    folder.put(71, "python", session=71)
    proc.look(71)
    assert folder.opened.count("cgroup") == 2


def test_without_names_to_look_for_no_environment_is_opened(folder: Folder) -> None:
    folder.put(71, "bash", session=71, environ="CLAUDECODE=1\0")
    folder.put(72, "claude", session=72, environ="CLAUDECODE=1\0")
    assert [each.marker for each in Proc(folder.path).walk()] == [0, 0]
    assert "environ" not in folder.opened and "cmdline" in folder.opened


def test_with_names_a_number_is_all_that_is_told_of_an_environment(folder: Folder) -> None:
    folder.put(71, "bash", session=71, environ="SECRET=n33dle\0CLAUDECODE=n33dle\0")
    folder.put(72, "bash", group=7, session=7, environ="CLAUDECODE=n33dle\0")
    proc = Proc(folder.path, markers=NAMES)
    found = {each.pid: each for each in proc.walk()}
    assert (found[71].marker, found[72].marker) == (2, 0)
    assert folder.opened.count("environ") == 1
    told = b"".join(encode(Executed(1, each.pid, each)) for each in found.values())
    assert b"n33dle" not in told and b"SECRET" not in told
    assert "n33dle" not in repr(vars(proc))


@pytest.mark.parametrize(
    ("cgroup", "is_strict", "is_seen"),
    [
        ("0::/system.slice/slurmstepd.scope/job_5/step_0", True, True), ("0::/", False, True), ("0::/", True, False),
        ("0::/system.slice/slurmstepd.scope/job_6/step_0", False, False),
        ("0::/system.slice/slurmstepd.scope/s5K1/step_0", False, True),
    ],
)  # fmt: skip
def test_in_a_job_others_are_passed_over(folder: Folder, cgroup: str, is_strict: bool, is_seen: bool) -> None:
    folder.put(71, "bash", session=71, cgroup=cgroup)
    proc = Proc(folder.path, only=Only(os.getuid(), 5, is_strict))
    assert (proc.look(71) is not None, proc.vanished) == (is_seen, 0)
    assert Proc(folder.path, only=Only(os.getuid() + 1, 5, is_strict)).look(71) is None


def test_a_real_session_tells_its_variable() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"], start_new_session=True,
        env={"CLAUDECODE": "n33dle"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline()
    seen, unasked = Proc(markers=NAMES).look(process.pid), Proc().look(process.pid)
    process.communicate()
    assert seen is not None and (seen.marker, seen.job) == (2, NO_JOB)
    assert unasked is not None and unasked.marker == 0

"""The hooks of slurmctld: they write what is listed and nothing else, end with 0 whatever happens, and stay small."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from telemetry.engine.slurm.hooks import NAMES, read_file
from tests.support.capabilities import ROOT

HOOKS = ROOT / "deploy/slurm"
SHELLS = [shell for shell in ("/bin/dash", "/bin/bash") if Path(shell).exists()]
SCRIPTS = {"jobcomp": "gatehouse-jobcomp.sh", "epilog": "gatehouse-epilog-slurmctld.sh", "mail": "gatehouse-mail.sh"}
ODD = b"a\nb'\"$(touch /tmp/x)`id`\\\x01\x81\x82\x88\xff=\xc3\xa9%s %"  # whatever a job may be called
JOBS = {
    "jobcomp": {"JOBID": "4", "ARRAYJOBID": "0", "ARRAYTASKID": "4294967294", "JOBSTATE": "FAILED", "EXITCODE": "3:0",
                "SUBMIT": "1796071903", "START": "1796071904", "END": "1796071907", "NODECNT": "1"},
    "epilog": {"SLURM_JOB_ID": "4", "SLURM_JOB_EXIT_CODE": "768", "SLURM_JOB_RESTART_COUNT": "0"},
    "mail": {"SLURM_JOB_ID": "4", "SLURM_JOB_MAIL_TYPE": "Began", "SLURM_JOB_STATE": "RUNNING"},
}  # fmt: skip
OTHERS = {"JOBNAME": ODD, "SLURM_JOB_NAME": ODD, "AWS_SECRET_ACCESS_KEY": b"hush", "IFS": b"4", "WORK_DIR": ODD}
kinds = pytest.mark.parametrize("kind", SCRIPTS)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    for name in ("new", "half"):
        (tmp_path / "spool" / name).mkdir(parents=True, mode=0o700)
    return tmp_path / "spool"


@pytest.fixture
def mailprog(tmp_path: Path) -> Iterator[Path]:
    """A mail program that keeps what it was given."""
    program = tmp_path / "mail"
    program.write_text(
        f'#!/bin/sh\nprintf "%s|" "$@" "$SLURM_JOB_NAME" >"{tmp_path}/mailed"\ncat >>"{tmp_path}/mailed"\n'
    )
    program.chmod(0o755)
    named = tmp_path / "mailprog"
    named.write_text(f"{program}\n")
    yield named


def run(
    kind: str, spool: Path, *, shell: str = "/bin/sh", script: Path | None = None, mailprog: Path | None = None,
    user: str | None = None, **values: str | bytes,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    environment = {"GATEHOUSE_EVENT_SPOOL": str(spool), "GATEHOUSE_MAILPROG_FILE": str(mailprog or "/dev/null")}
    given = environment | JOBS[kind] | OTHERS | values
    command = [shell, str(script or HOOKS / SCRIPTS[kind]), *(("-s", "Job 4", "iris") if kind == "mail" else ())]
    return subprocess.run(command, env=given, input=b"text", capture_output=True, check=False, user=user)


def written(spool: Path) -> list[Path]:
    return sorted((spool / "new").iterdir())


@kinds
@pytest.mark.parametrize("shell", SHELLS)
def test_a_hook_writes_what_is_listed_alone(kind: str, shell: str, spool: Path) -> None:
    ran = run(kind, spool, shell=shell)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    (file,) = written(spool)
    assert read_file(file.read_bytes()) == (kind, JOBS[kind])
    assert b"hush" not in file.read_bytes() and ODD not in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list((spool / "half").iterdir())


@kinds
@pytest.mark.parametrize("shell", SHELLS)
def test_odd_values_stand_as_they_are(kind: str, shell: str, spool: Path) -> None:
    name = {"jobcomp": "JOBSTATE", "epilog": "SLURM_JOB_EXIT_CODE2", "mail": "SLURM_JOB_STATE"}[kind]
    assert run(kind, spool, shell=shell, **{name: ODD}).returncode == 0
    assert f"{name}=".encode() + ODD + b"\0" in written(spool)[0].read_bytes()


@kinds
@pytest.mark.parametrize("job", ["", "4;id", "../4", "-1"])
def test_what_is_no_job_is_not_written(kind: str, job: str, spool: Path) -> None:
    name = "JOBID" if kind == "jobcomp" else "SLURM_JOB_ID"
    assert run(kind, spool, **{name: job}).returncode == 0
    assert not written(spool)


@kinds
@pytest.mark.parametrize("shell", SHELLS)
def test_it_ends_well_whatever_is_wrong(kind: str, shell: str, spool: Path, tmp_path: Path) -> None:
    assert run(kind, tmp_path / "missing", shell=shell).returncode == 0
    alone = shutil.copy(HOOKS / SCRIPTS[kind], tmp_path)  # without what it reads
    assert run(kind, spool, shell=shell, script=Path(alone)).returncode == 0
    (tmp_path / "gatehouse-hook.sh").write_text("if ( ;;")
    assert run(kind, spool, shell=shell, script=Path(alone)).returncode == 0
    shutil.rmtree(spool / "half")
    assert run(kind, spool, shell=shell).returncode == 0
    assert not written(spool)


@kinds
@pytest.mark.skipif(os.geteuid() != 0, reason="runs as somebody else")
def test_a_spool_of_somebody_else_is_let_be(kind: str, spool: Path) -> None:
    for folder in (spool.parent, *spool.parent.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    ran = run(kind, spool, user="nobody")
    assert (ran.returncode, ran.stderr, written(spool)) == (0, b"", [])


@kinds
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_leaves_no_half_file(kind: str, shell: str, spool: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "x", spool], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (spool / "new").mkdir()
        (spool / "half").mkdir()
        with (spool / "fill").open("wb") as fill, contextlib.suppress(OSError):
            fill.write(b"x" * 100_000)
        assert run(kind, spool, shell=shell).returncode == 0
        assert not written(spool) and not list((spool / "half").iterdir())
    finally:
        subprocess.run(["umount", spool], check=True)


@kinds
def test_a_spool_that_nobody_empties_stays_small(kind: str, spool: Path) -> None:
    for number in range(2048):
        (spool / "new" / f"jobcomp-{number}-1").touch()
    began = time.monotonic()
    assert run(kind, spool).returncode == 0
    assert time.monotonic() - began < 1
    assert len(written(spool)) == 2048


@pytest.mark.parametrize("type_", ["Began", "Ended", "Reached 80% of time limit", ""])
def test_a_mail_goes_on_to_the_sites_own_program(type_: str, spool: Path, mailprog: Path, tmp_path: Path) -> None:
    assert run("mail", spool, mailprog=mailprog, SLURM_JOB_MAIL_TYPE=type_).returncode == 0
    assert (tmp_path / "mailed").read_bytes() == b"-s|Job 4|iris|" + ODD + b"|text"
    assert len(written(spool)) == (type_ in ("Began", "Ended"))


def test_a_mail_goes_on_without_a_spool_and_ends_as_it_ends(mailprog: Path, tmp_path: Path) -> None:
    mailprog.write_text("/bin/false\n")
    assert run("mail", tmp_path / "missing", mailprog=mailprog).returncode == 1


def test_the_hooks_write_what_is_read() -> None:
    for kind, script in SCRIPTS.items():
        words = (HOOKS / script).read_text().split("gatehouse_spool", 1)[1].split("} >")[0].split(") >")[0]
        assert set(NAMES[kind]) <= set(words.replace('"', " ").split()), kind

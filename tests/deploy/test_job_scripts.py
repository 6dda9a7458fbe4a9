"""What a site puts into its prolog, and into batch scripts, harms no job whatever becomes of the collector."""

import os
import subprocess
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from portal.cli.collect.config import Config, read

DEPLOY = Path(__file__).parents[2] / "deploy"


def stand_in(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ["gatehouse-prolog.sh", "gatehouse-epilog.sh"])
def test_a_prolog_and_an_epilog_never_fail(name: str) -> None:
    script = (DEPLOY / "slurm" / name).read_text().replace("PATH=/usr/bin:/bin", "PATH=/nonexistent")
    ran = subprocess.run(["/bin/sh", "-c", script], env={"SLURM_JOB_ID": "7"}, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_a_prolog_starts_a_collector_of_the_job(tmp_path: Path) -> None:
    told = tmp_path / "told"
    stand_in(tmp_path, "systemd-run", f'printf "%s\\n" "$@" > {told}; exit 1')
    script = (DEPLOY / "slurm/gatehouse-prolog.sh").read_text().replace("PATH=/usr/bin:/bin", f"PATH={tmp_path}:/bin")
    environment = {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "1000"}
    assert subprocess.run(["/bin/sh", "-c", script], env=environment, check=False).returncode == 0
    words = told.read_text().splitlines()
    assert {"--unit=gatehouse-collect-7", "--setenv=SLURM_JOB_ID=7", "--setenv=SLURM_JOB_UID=1000"} <= set(words)
    assert words[-5:] == [
        "/opt/gatehouse/bin/gatehouse", "collect", "--in-job", "--config", "/etc/gatehouse/collect.toml"
    ]  # fmt: skip


@pytest.mark.parametrize("collector", ["exit 2", "trap 'exit 0' TERM; sleep 60 & wait", None])
def test_a_wrapper_s_command_runs_and_its_exit_code_counts(tmp_path: Path, collector: str | None) -> None:
    program = stand_in(tmp_path, "gatehouse", collector) if collector else tmp_path / "none"
    ran = subprocess.run(
        [DEPLOY / "slurm/gatehouse-collect-job", "sh", "-c", 'printf "%s" "$1"; exit 3', "sh", "a  b"],
        env=os.environ | {"GATEHOUSE_PROGRAM": str(program)}, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (3, b"a  b")


def test_the_sample_of_settings_names_all_of_them_and_shows_what_they_are_without(tmp_path: Path) -> None:
    text, table = (DEPLOY / "collect.toml").read_text(), "# [agent_keys]"  # the one that is a table, and last
    assert read(DEPLOY / "collect.toml") == Config("https://gatehouse.example.org", "aster")
    shown = tomllib.loads(
        "\n".join(line.removeprefix("# ") for line in text.splitlines() if " = " in line or table in line)
    )
    assert list(shown.pop("agent_keys").values()) == ["claude-code"]
    assert shown == {each.name: each.default for each in fields(Config) if each.name != "agent_keys"} | {
        "portal": "https://gatehouse.example.org", "cluster": "aster",
    }  # fmt: skip

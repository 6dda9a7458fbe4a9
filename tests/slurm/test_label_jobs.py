"""The controller labels jobs that come out of an agent's environment, and no others; nothing stops a job."""

import pytest

from tests.support.slurm import Slurm

pytestmark = pytest.mark.slurm


def label_of(facility: Slurm, job: int) -> str:
    facility.wait_for(job, "COMPLETED")
    return facility.run("sacct", "-X", "-n", "-P", "-o", "AdminComment", "-j", str(job)).strip()


def test_a_job_from_an_agents_environment_is_labelled(facility: Slurm) -> None:
    job = facility.submit(script="true", environment={"CLAUDECODE": "never told"})
    assert label_of(facility, job) == "gatehouse:v1:harness=claude-code:marker=CLAUDECODE"


def test_a_persons_job_is_not(facility: Slurm) -> None:
    assert label_of(facility, facility.submit(script="true")) == ""


def test_a_job_that_keeps_its_environment_to_itself_runs_without_a_label(facility: Slurm) -> None:
    job = facility.submit("--export=NONE", script="true", environment={"CLAUDECODE": "1"})
    assert label_of(facility, job) == ""


def test_nobody_can_write_the_label_himself(facility: Slurm) -> None:
    given = ("sbatch", "--parsable", "--admin-comment=gatehouse:v1:harness=codex:marker=CODEX_CI", "--wrap=true")
    told = facility.run(*given, user="daemon", check=False)
    assert told == ""


def test_a_file_turns_labelling_off(facility: Slurm) -> None:
    off = facility.folder / "label.off"
    off.touch()
    try:
        job = facility.submit(script="true", environment={"CLAUDECODE": "1"})
    finally:
        off.unlink()
    assert label_of(facility, job) == ""

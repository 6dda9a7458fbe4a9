"""What events of jobs say beyond the state: output paths that are sure, and what usually helps."""

import pytest

from telemetry.engine.job_hints import Outputs, find_outputs, hint_for, waits_for
from telemetry.engine.slurm.records import JobRecord

JOB = JobRecord(71, "71", "u", "RUNNING", 0, work_dir="/home/u/run")
TASK = JobRecord(74, "70_4", "u", "RUNNING", 0, array_job_id=70, array_task=4, work_dir="/home/u/run")


@pytest.mark.parametrize(
    ("line", "stdout", "stderr"),
    [
        ("sbatch job.sh", "", ""),  # #SBATCH lines may say anything
        ("sbatch --output=out-%j.txt job.sh", "/home/u/run/out-71.txt", ""),
        ("sbatch -o /logs/%j.out -e /logs/%j.err job.sh", "/logs/71.out", "/logs/71.err"),
        ("/usr/bin/sbatch -oa.out --error b.err job.sh", "/home/u/run/a.out", "/home/u/run/b.err"),
        ("sbatch -o a -o b job.sh", "/home/u/run/b", ""),
        ("sbatch -n 2 -o 100%%-%A job.sh", "/home/u/run/100%-71", ""),
        ("sbatch -o '%x.out' job.sh", "", ""),  # a name that we do not write as Slurm does
        ("sbatch -o %a.out job.sh", "", ""),
        ("sbatch -o [REDACTED:token] job.sh", "", ""),
        ("sbatch job.sh train.py -o model.bin", "", ""),
        ("sbatch -p gpu job.sh -o model.bin", "", ""),
        ("srun -o a.out hostname", "", ""),
        ("sbatch -o 'open", "", ""),
        ("sbatch -o", "", ""),
        ("", "", ""),
    ],
)
def test_only_paths_that_are_sure_are_told(line: str, stdout: str, stderr: str) -> None:
    assert find_outputs(JOB._replace(submit_line=line)) == (stdout, stderr)


def test_a_task_has_its_own_numbers_and_slurm_s_word_goes_first() -> None:
    assert find_outputs(TASK._replace(submit_line="sbatch -o %A_%a-%j.out j"))[0] == "/home/u/run/70_4-74.out"
    told = TASK._replace(submit_line="sbatch -o x j", extra={"StdOut": "/a/%A.out", "StdErr": "/a/e%N"})
    assert find_outputs(told) == ("/a/70.out", "")
    assert find_outputs(told, Outputs("/b", "/b/%a")) == ("/a/70.out", "")
    assert find_outputs(TASK._replace(submit_line="sbatch -o x j"), Outputs("/b/%A", "/b/%a")) == ("/b/70", "/b/4")
    assert find_outputs(JOB._replace(work_dir="", submit_line="sbatch -o x j"))[0] == ""


@pytest.mark.parametrize(
    ("facts", "hint"),
    [
        ({"state": "COMPLETED"}, ""),
        ({"state": "FAILED", "started": True, "exit_code": 1}, ""),
        ({"state": "FAILED", "started": True, "exit_code": 127}, "not found"),
        ({"state": "FAILED", "started": False}, "--test-only"),
        ({"state": "OUT_OF_MEMORY", "mem_bytes": 4 * 2**30}, "It had 4 GiB. Ask for more memory (--mem)"),
        ({"state": "OUT_OF_MEMORY"}, "Ask for more memory"),
        ({"state": "TIMEOUT", "timelimit_s": 5400}, "It had 1 h 30 min. Ask for more time"),
        ({"state": "NODE_FAIL"}, "the machine"),
        ({"state": "PENDING", "reason": "Priority"}, ""),
        ({"state": "PENDING", "reason": "PartitionTimeLimit"}, "will not start as it is"),
    ],
)
def test_what_usually_helps(facts: dict[str, object], hint: str) -> None:
    told = hint_for(JOB._replace(**facts))
    assert hint in told and bool(told) == bool(hint)


def test_why_it_waits_in_words() -> None:
    assert waits_for(JOB._replace(state="PENDING", reason="Priority")) == "Other jobs are ahead of it"
    assert waits_for(JOB._replace(state="RUNNING", reason="None")) == ""

"""`gatehouse assess` without a file, beside a real Slurm: it counts what this Slurm accounts for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from telemetry.engine.slurm.records import JobRecord
from telemetry.engine.slurm.sacct_text import SacctReader
from tests.slurm.conftest import Fates
from tests.support.slurm import CLUSTER, Slurm

pytestmark = pytest.mark.slurm
ROOT = Path(__file__).resolve().parent.parent.parent


def assess(facility: Slurm, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "portal.cli.main", "assess", *options], env=facility.environment, cwd=ROOT,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_it_counts_the_jobs_that_accounting_shows(facility: Slurm, fates: Fates) -> None:
    ran = assess(facility, "--json", "--cluster", CLUSTER)
    assert (ran.returncode, ran.stderr) == (0, "")
    figures = {one["key"]: one for section in json.loads(ran.stdout)["sections"] for one in section["figures"]}
    read = {one["key"]: one["values"][0] for one in figures["records"]["rows"]}
    told = [one for one in SacctReader([fates.listed], now_s=2**32) if isinstance(one, JobRecord)]
    # What was cancelled before it could start is in no span of time that ends now.
    ended = {(job.raw_job_id, job.submit_s) for job in told if (job.eligible_s or 0) <= (job.end_s or 0)}
    assert len(ended) >= 8
    assert read["counted"] >= len(ended)  # other tests of this Slurm may have ended more since
    assert figures["cancelled"]["value"] > 0 and figures["failed"]["value"] > 0
    assert figures["set-aside"]["value"] >= 1  # the one that reads two ways


def test_a_cluster_that_this_slurm_does_not_have_is_told_in_its_words(facility: Slurm) -> None:
    ran = assess(facility, "--json", "--cluster", "boreas")
    assert ran.returncode == 2
    assert "[" in ran.stderr.splitlines()[0] and "sacct" in ran.stderr and "Traceback" not in ran.stderr

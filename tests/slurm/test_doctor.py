"""`gatehouse doctor` on a node of a real Slurm, as an ordinary user."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.capabilities import ROOT
from tests.support.slurm import USERS, Slurm

pytestmark = pytest.mark.slurm


def test_it_finds_this_slurm(facility: Slurm, tmp_path) -> None:
    facility.run("sacct", "--version")
    ran = subprocess.run(
        [sys.executable, "-c", "from portal.cli.main import main; import sys; sys.exit(main(['doctor', '--json',"
         " '--tier', '0', '--tier', '2', '--tier', '4']))"],
        env={**facility.environment, "PYTHONPATH": str(ROOT), "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
        user=USERS[0] if os.access(ROOT, os.X_OK) and _others_may_read() else None,
        cwd="/", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ran.stderr == ""
    seen = {finding["code"]: finding for finding in json.loads(ran.stdout)}
    states = {code: finding["state"] for code, finding in seen.items()}
    assert states["sacct"] == states["private_data"] == states["controller"] == "ok"
    assert states["munge"] == states["controller_port"] == "ok"
    assert states["limits"] == states["labels"] == "ok"
    assert states["events"] == "wrong"  # there is no portal here
    assert ran.returncode == 1


def _others_may_read() -> bool:
    """Say whether an ordinary user may enter every folder down to this checkout."""
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in (ROOT, *ROOT.parents))

"""Every worker collects the same tests: none has the time or the order of a set in its name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def collected(seed: str) -> list[str]:
    """Return the names that a fresh interpreter with this hash seed collects."""
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in told.stdout.splitlines() if "::" in line]


@pytest.mark.soak
def test_two_collections_seconds_apart_name_the_same_tests():
    first, second = collected("1"), collected("77")
    assert len(first) > 5_000
    assert first == second

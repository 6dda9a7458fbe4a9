"""Slurm's own commands on a node, run for what they tell: past ours in PATH, in plain words and UTC, not for ever."""

import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from portal.cli.shims.real import find_real
from telemetry.engine.slurm.asking import clean_environment, explain_complaint


class Ran(NamedTuple):
    """How a command ended: its output, or why there is none and what would mend it."""

    out: str
    trouble: str = ""
    fix: str = ""


def run(command: tuple[str, ...], given: Mapping[str, str], *, timeout_s: float, **more: str) -> Ran:
    """Run a command that reads, in the environment `given` but for what changes how it prints; `more` goes on top."""
    name = command[0]
    path = find_real(name, given)
    if path is None:
        return Ran(
            "", f"{name} is not in PATH.", f"Install Slurm's client commands, or add their folder to PATH ({name})."
        )
    try:
        ran = subprocess.run(
            [path, *command[1:]], env=clean_environment(given) | more, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=timeout_s, check=False,
        )  # fmt: skip
    except OSError as error:
        return Ran("", f"{path} cannot be run: {error.strerror}.", "See who may run it.")
    except subprocess.TimeoutExpired:
        return Ran("", f"{name} gave no answer in {timeout_s:.0f} s.", "Look at slurmctld's load (sdiag).")
    if ran.returncode == 0:
        return Ran(ran.stdout)
    said, _, fix = explain_complaint(name, ran.stderr.strip() or f"it ended with {ran.returncode}")
    return Ran("", said, fix or f"Run {' '.join(command)} by hand to see more.")

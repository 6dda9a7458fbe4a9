"""Slurm's own commands, as a source: run with a limit of time, in UTC, and believed only where they say no more."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from portal.core.errors import DomainError
from telemetry.engine.slurm.columns import COMMAND
from telemetry.engine.slurm.queue import FORMAT, Queue, read_queue
from telemetry.engine.slurm.statistics import Statistics, read_statistics

TIMEOUT_S: Final = 60.0
# On one command line: the kernel takes megabytes, slurmdbd is asked for no more than it answers at once.
IDS_A_CALL: Final = 500
_COLUMNS: Final = COMMAND.partition("--format=")[2]


# What a complaint holds → the code and what to do about it; the first that fits.
_REMEDIES: Final = (
    (
        ("configuration source", "fetch_config", "dns srv", "slurm.conf"), "slurm_unconfigured",
        "Give this host the cluster's configuration: slurm.conf in /etc/slurm (or where SLURM_CONF points), or the "
        "DNS record by which a configless slurmctld is found.",
    ),
    (
        ("munge", "authentication", "auth_"), "slurm_not_trusted",
        "See that munged runs here with the cluster's munge.key, and that the clocks agree.",
    ),
    (
        ("unable to contact", "connection refused", "timed out"), "slurm_unreachable",
        "See that slurmctld and slurmdbd run, and that this host reaches them (scontrol ping).",
    ),
    (
        ("accounting storage is disabled",), "slurm_without_accounting",
        "The reader needs slurmdbd: AccountingStorageType=accounting_storage/slurmdbd in slurm.conf.",
    ),
)  # fmt: skip


class SlurmUnavailable(DomainError):
    """Slurm did not answer, or not so that its answer can be believed."""

    status, title, code = 503, "Slurm does not answer", "slurm_unavailable"


@dataclass
class Commands:
    """The commands of one Slurm. `calls` counts what was asked of its daemons, `busy_s` how long they took."""

    environment: dict[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    calls: int = 0
    busy_s: float = 0.0

    def look(self) -> Queue:
        """Ask the controller who is in the queue. Errors: `SlurmUnavailable`, `FormatError`."""
        return read_queue(self._run("squeue", "--all", "--noheader", "--Format", FORMAT).decode(errors="replace"))

    def account_for(self, jobs: Sequence[int]) -> bytes:
        """Ask accounting for every record of some jobs, whenever they were. Errors: `SlurmUnavailable`."""
        return self._sacct("--jobs", ",".join(map(str, jobs)))

    def account_between(self, first: datetime, last: datetime) -> bytes:
        """Ask accounting for what stood or ended in a span of time. Errors: `SlurmUnavailable`.

        What was cancelled before it became eligible is in no span of time: only `account_for` finds it.
        """
        return self._sacct("--allusers", "--starttime", _written(first), "--endtime", _written(last))

    def count(self) -> Statistics:
        """Ask the controller who asked it what. Errors: `SlurmUnavailable`, `FormatError`."""
        return read_statistics(self._run("sdiag").decode(errors="replace"))

    def _sacct(self, *which: str) -> bytes:
        return self._run("sacct", "--duplicates", "--parsable2", *which, f"--format={_COLUMNS}")

    def _run(self, *command: str) -> bytes:
        began = time.monotonic()
        self.calls += 1
        try:
            ran = subprocess.run(
                command, env=self._environment(), capture_output=True, timeout=self.timeout_s, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except FileNotFoundError:
            raise SlurmUnavailable(
                f"This host has no {command[0]}.", code="slurm_missing", remedy="Install Slurm's client commands."
            ) from None
        except subprocess.TimeoutExpired:
            raise SlurmUnavailable(
                f"{command[0]} took more than {self.timeout_s:.0f} s.", code="slurm_slow",
                remedy="Look at the load of slurmctld and slurmdbd (sdiag).",
            ) from None  # fmt: skip
        finally:
            self.busy_s += time.monotonic() - began
        complaint = ran.stderr.decode(errors="replace").strip()
        # An empty answer with a warning is no empty queue, and half an answer is no answer.
        if ran.returncode or complaint:
            raise _unavailable(command[0], complaint or f"it ended with {ran.returncode}")
        return ran.stdout

    def _environment(self) -> dict[str, str]:
        """Return the environment without what would change how times and columns are written."""
        changing = ("SLURM_TIME", "SQUEUE_", "SACCT_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
        return kept | self.environment | {"TZ": "UTC", "LC_ALL": "C.UTF-8"}


def _unavailable(command: str, complaint: str) -> SlurmUnavailable:
    """Say what a command complained of, and what to do where the complaint is a known one."""
    lines = complaint.splitlines()
    worst = next((line for line in lines if "fatal: " in line), lines[0])
    first = worst.removeprefix(f"{command}: ").removeprefix("error: ").removeprefix("fatal: ")[:200]
    heard = complaint.lower()
    for signs, code, remedy in _REMEDIES:
        if any(sign in heard for sign in signs):
            return SlurmUnavailable(f"{command}: {first}.", code=code, remedy=remedy)
    return SlurmUnavailable(f"{command}: {first}.", remedy="Look at slurmctld and slurmdbd.")


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")

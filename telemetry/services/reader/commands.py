"""Slurm's own commands, as a source: run with a limit of time, in UTC, and believed only where they say no more."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from portal.core.errors import DomainError
from telemetry.engine.redaction import redact_raw
from telemetry.engine.slurm.columns import COMMAND
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.inventory import Association, Node, Partition, Qos, Reading, sacctmgr_text, scontrol_text
from telemetry.engine.slurm.queue import FORMAT, Queue, read_queue
from telemetry.engine.slurm.statistics import Statistics, read_statistics
from telemetry.services.ingest.feed import redaction_key
from telemetry.services.reader.running import TooMuch, run_within

TIMEOUT_S: Final = 60.0
# On one command line: the kernel takes megabytes, slurmdbd is asked for no more than it answers at once.
IDS_A_CALL: Final = 500
MOST_BYTES: Final = 256 * 1024 * 1024  # of an answer, which is read whole: a hundred thousand records and more
_SHOWN: Final = 300
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


def describe(error: DomainError | FormatError) -> str:
    """Return what went wrong as one line to show and keep: what a command printed may be a secret, or move a cursor."""
    text, _ = redact_raw(error.detail, key=redaction_key(), keep=_SHOWN)
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


@dataclass
class Commands:
    """The commands of one Slurm. `calls` counts what was asked of its daemons, `busy_s` how long they took."""

    environment: dict[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    most_bytes: int = MOST_BYTES
    calls: int = 0
    busy_s: float = 0.0

    def look(self) -> Queue:
        """Ask the controller who is in the queue. Errors: `SlurmUnavailable`, `FormatError`."""
        return read_queue(self._text("squeue", "--all", "--noheader", "--Format", FORMAT))

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
        return read_statistics(self._text("sdiag"))

    def nodes(self) -> Reading[Node]:
        """Ask the controller about every node. Errors: `SlurmUnavailable`, `FormatError`."""
        return scontrol_text.read_nodes(self._text(*scontrol_text.NODES_COMMAND))

    def partitions(self) -> Reading[Partition]:
        """Ask the controller about every partition. Errors: as `nodes`."""
        return scontrol_text.read_partitions(self._text(*scontrol_text.PARTITIONS_COMMAND))

    def qos(self) -> Reading[Qos]:
        """Ask accounting about every QoS. Errors: as `nodes`."""
        return sacctmgr_text.read_qos(self._text(*sacctmgr_text.QOS_COMMAND))

    def associations(self, cluster: str) -> Reading[Association]:
        """Ask accounting about every association of one cluster, and which account is each user's default: two calls.

        Errors: as `nodes`.
        """
        only = f"cluster={cluster}"
        told = self._text(*sacctmgr_text.ASSOCIATIONS_COMMAND, only)
        return sacctmgr_text.read_associations(told, self._text(*sacctmgr_text.DEFAULTS_COMMAND, only))

    def _text(self, *command: str) -> str:
        return self._run(*command).decode(errors="replace")

    def _sacct(self, *which: str) -> bytes:
        return self._run("sacct", "--duplicates", "--parsable2", *which, f"--format={_COLUMNS}")

    def _run(self, *command: str) -> bytes:
        began = time.monotonic()
        self.calls += 1
        try:
            ran = run_within(
                command, environment=self._environment(), timeout_s=self.timeout_s, most_bytes=self.most_bytes
            )
        except (OSError, subprocess.TimeoutExpired, TooMuch) as error:
            raise self._explain(command[0], error) from None
        finally:
            self.busy_s += time.monotonic() - began
        complaint = ran.complaint.decode(errors="replace").strip()
        # An empty answer with a warning is no empty queue, and half an answer is no answer.
        if ran.status or complaint:
            raise _unavailable(command[0], complaint or f"it ended with {ran.status}")
        return ran.out

    def _explain(self, name: str, error: Exception) -> SlurmUnavailable:
        if isinstance(error, subprocess.TimeoutExpired):
            return SlurmUnavailable(
                f"{name} took more than {self.timeout_s:.0f} s.", code="slurm_slow",
                remedy="Look at the load of slurmctld and slurmdbd (sdiag).",
            )  # fmt: skip
        if isinstance(error, TooMuch):
            return SlurmUnavailable(
                f"{name} printed more than {self.most_bytes} bytes.", code="slurm_too_much",
                remedy=f"Run {name} by hand: is it Slurm's own?",
            )  # fmt: skip
        if isinstance(error, FileNotFoundError):
            words, remedy = f"This host has no {name}.", "Install Slurm's client commands."
            return SlurmUnavailable(words, code="slurm_missing", remedy=remedy)
        words = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return SlurmUnavailable(
            f"{name} cannot be run: {words}.", code="slurm_missing", remedy=f"Run {name} by hand: is it Slurm's own?"
        )

    def _environment(self) -> dict[str, str]:
        """Return the environment without what would change how times and columns are written."""
        changing = ("SLURM_TIME", "SLURM_BITSTR", "SQUEUE_", "SACCT_", "SCONTROL_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
        return kept | self.environment | {"TZ": "UTC", "LC_ALL": "C.UTF-8"}


def _unavailable(command: str, complaint: str) -> SlurmUnavailable:
    """Say what a command complained of, and what to do where the complaint is a known one."""
    lines = complaint.splitlines()
    worst = next((line for line in lines if "fatal: " in line), lines[0])
    first = worst.removeprefix(f"{command}: ").removeprefix("error: ").removeprefix("fatal: ")
    heard = complaint.lower()
    for signs, code, remedy in _REMEDIES:
        if any(sign in heard for sign in signs):
            return SlurmUnavailable(f"{command}: {first}.", code=code, remedy=remedy)
    return SlurmUnavailable(f"{command}: {first}.", remedy="Look at slurmctld and slurmdbd.")


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")

"""How Slurm's commands are asked for history, and what their complaints mean; who runs them is another matter."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from telemetry.engine.slurm.columns import COMMAND

NO_COMMANDS: Final = "Install Slurm's client commands."  # what to do where there are none
_COLUMNS: Final = COMMAND.partition("--format=")[2]
# What changes how Slurm's commands write times and columns.
_CHANGING: Final = ("SLURM_TIME", "SLURM_BITSTR", "SQUEUE_", "SACCT_", "SCONTROL_")
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


def clean_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what would change how times and columns are written: UTC, plain words."""
    kept = {name: value for name, value in given.items() if not name.startswith(_CHANGING)}
    return kept | {"TZ": "UTC", "LC_ALL": "C.UTF-8"}


def sacct_command(*which: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command for every record of some jobs, in the columns that a reading needs and some `more`."""
    asked = _COLUMNS.lower().split(",")
    others = [name for name in more if name.lower() not in asked]
    return "sacct", "--duplicates", "--parsable2", *which, f"--format={','.join([_COLUMNS, *others])}"


def between(first: datetime, last: datetime) -> tuple[str, ...]:
    """Return sacct's options for what stood or ended in a span of time, of all whom the one who asks may see.

    What was cancelled before it became eligible is in no span of time.
    """
    return "--allusers", "--starttime", _written(first), "--endtime", _written(last)


def explain_complaint(name: str, complaint: str) -> tuple[str, str, str]:
    """Return what a program complained of in one line, and the code and remedy of a known complaint ("" without)."""
    lines = complaint.splitlines()
    worst = next((line for line in lines if "fatal: " in line), lines[0])
    first = worst.removeprefix(f"{name}: ").removeprefix("error: ").removeprefix("fatal: ")
    heard = complaint.lower()
    known = ((code, remedy) for signs, code, remedy in _REMEDIES if any(sign in heard for sign in signs))
    return f"{name}: {first}.", *next(known, ("", ""))


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")

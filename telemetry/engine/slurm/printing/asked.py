"""What a command line of `squeue` asks for, read strictly: an option that is not on the list is the real command's.

Source: squeue(1). The ids of `-j` may stand apart from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.layout import DEFAULT, Layout, read_long, read_short
from telemetry.engine.slurm.printing.options import AskedJob, Grammar, read_options, read_plain_jobs

_SQUEUE: Final = Grammar(
    flags={"h": "noheader", "a": "all"},
    valued={
        "u": "user", "A": "account", "p": "partition", "t": "states", "n": "name", "o": "format", "O": "Format",
        "j": "jobs",
    },
    more_flags=frozenset({"me"}), also={"users": "user", "job": "jobs"}, anywhere="jobs",
)  # fmt: skip
# What makes squeue print otherwise, where it stands in the environment.
_CHANGING: Final = ("SQUEUE_", "SLURM_CLUSTERS", "SLURM_BITSTR", "SLURM_TIME_FORMAT")
# The states that squeue names without doubt about what stands behind the name (squeue(1), "JOB STATE CODES").
STATES: Final = {
    "PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "CD": "COMPLETED", "CA": "CANCELLED", "F": "FAILED",
    "TO": "TIMEOUT", "NF": "NODE_FAIL", "PR": "PREEMPTED", "BF": "BOOT_FAIL", "DL": "DEADLINE",
    "OOM": "OUT_OF_MEMORY", "CG": "COMPLETING", "CF": "CONFIGURING",
}  # fmt: skip
_LONG_STATES: Final = {long: short for short, long in STATES.items()}


@dataclass(frozen=True)
class Asked:
    """What is asked for. An empty list of anything asks for all; so does `states` of None for what stands in the queue.

    `states` are compact ones, `ALL` for each.
    """

    layout: Layout
    has_header: bool = True
    me: bool = False
    users: tuple[str, ...] = ()
    jobs: tuple[AskedJob, ...] = ()
    accounts: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    states: frozenset[str] | None = None
    wants_hidden: bool = False


ALL: Final = frozenset({"ALL"})


def read_squeue_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> Asked:
    """Read a command line and what the environment adds to it. Errors: `PassedOn`."""
    for name, value in environment.items():
        if name.startswith(_CHANGING) and not (name == "SLURM_TIME_FORMAT" and value == "standard"):
            raise PassedOn("environment")
    options = read_options(_SQUEUE, arguments)
    flags, values = options.flags, options.values
    if {"format", "Format"} <= values.keys() or ("user" in values and "me" in flags):
        raise PassedOn("option")
    layout = read_long(values["Format"]) if "Format" in values else read_short(values.get("format", DEFAULT))
    states = _states(values["states"]) if "states" in values else None
    return Asked(
        layout=layout, has_header="noheader" not in flags, me="me" in flags,
        users=_names(values, "user"), jobs=read_plain_jobs(values.get("jobs", "")), accounts=_names(values, "account"),
        partitions=_names(values, "partition"), names=_names(values, "name"), states=states,
        wants_hidden="all" in flags or bool(values.keys() & {"partition", "jobs"}),
    )  # fmt: skip


def _names(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    if name not in values:
        return ()
    names = tuple(values[name].split(","))
    if not all(names):
        raise PassedOn("option")
    return names


def _states(text: str) -> frozenset[str]:
    if text.lower() == "all":
        return ALL
    words = [word.upper() for word in text.split(",")]
    if not all(word in STATES or word in _LONG_STATES for word in words):
        raise PassedOn("state")
    return frozenset(_LONG_STATES.get(word, word) for word in words)

"""Values that only the inventory has: node states, generic resources, limits on trackable resources.

Sources: the man pages scontrol(1), sinfo(1), sacctmgr(1); Slurm's `src/common/slurm_protocol_defs.c` for states.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.inventory.forms import TresLimit
from telemetry.engine.slurm.values import parse_count, parse_memory

NODE_STATES: Final = frozenset({"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"})
MIB: Final = 2**20
NOTHING: Final = frozenset({"", "(null)", "N/A", "NONE"})
# What sinfo(1) and scontrol(1) write behind a state instead of a word.
_MARKS: Final = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
_QOS_FLAGS: Final = {
    "DENY_LIMIT": "DenyOnLimit",
    "ENFORCE_USAGE_THRESHOLD": "EnforceUsageThreshold",
    "NO_DECAY": "NoDecay",
    "NO_RESERVE": "NoReserve",
    "OVERRIDE_PARTITION_QOS": "OverPartQOS",
    "PARTITION_MAXIMUM_NODE": "PartitionMaxNodes",
    "PARTITION_MINIMUM_NODE": "PartitionMinNodes",
    "PARTITION_QOS": "PartitionQOS",
    "PARTITION_TIME_LIMIT": "PartitionTimeLimit",
    "RELATIVE": "Relative",
    "REQUIRED_RESERVATION": "RequiresReservation",
    "USAGE_FACTOR_SAFE": "UsageFactorSafe",
}
_GRES_OF: Final = re.compile(r"\([^()]*\)")  # `(S:0-1)`, `(IDX:0,2)`: sockets and indexes, with commas of their own
_GRES_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")
_GRES_COUNT: Final = re.compile(r"[0-9]{1,15}[KMGTP]?")
_SIZES: Final = ("mem", "vmem", "bb/")


def read_node_state(text: str) -> tuple[str, tuple[str, ...]]:
    """Read `IDLE+DRAIN`, `down*+drain`, `mixed-`: the base state and its flags. Raises `unknown_node_state`."""
    words: list[str] = []
    for part in text.strip().upper().split("+"):
        word = part.rstrip("".join(_MARKS))
        words += [word, *(_MARKS[mark] for mark in part[len(word) :])]
    return split_node_state(words)


def split_node_state(words: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Tell the base state of a node from its flags, which may stand in any order. Raises `unknown_node_state`."""
    said = [word.upper() for word in words]
    base = [word for word in said if word in NODE_STATES]
    flags = {word for word in said if word not in NODE_STATES}
    if len(base) != 1 or "" in flags:
        raise FieldError("unknown_node_state", f"{'+'.join(said)[:60]!r} is not a state of a node")
    return base[0], tuple(sorted(flags))


def read_gres(text: str) -> dict[str, int]:
    """Read `gpu:a100:4(S:0-1),gpu:2,shard:8` as what there is of each: `{"gpu:a100": 4, "gpu": 2, "shard": 8}`.

    Raises FieldError `bad_gres`.
    """
    found: Counter[str] = Counter()
    bare = _GRES_OF.sub("", text).strip()
    if bare in NOTHING:
        return {}
    for item in bare.split(","):
        words = [word for word in item.split(":") if word != "no_consume"]
        # A count is what is left out where there is one.
        count = parse_count(words.pop()) if len(words) > 1 and _GRES_COUNT.fullmatch(words[-1]) else 1
        if not 1 <= len(words) <= 2 or not all(map(_GRES_WORD.fullmatch, words)):
            raise FieldError("bad_gres", f"{item[:60]!r} is not a generic resource")
        found[":".join(words)] += count or 0
    return dict(found)


def count_gpus(gres: Mapping[str, int]) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Count the GPUs among generic resources: all of them, and the typed ones by type."""
    types = {name.removeprefix("gpu:"): count for name, count in gres.items() if name.startswith("gpu:") and count}
    return sum(types.values()) + gres.get("gpu", 0), tuple(sorted(types.items()))


def read_tres_limit(text: str) -> TresLimit:
    """Read `cpu=10,gres/gpu=3,mem=500G` as pairs, sizes in bytes. Raises FieldError `bad_tres`, `bad_count`."""
    pairs = []
    for item in filter(None, text.split(",")):
        name, equals, value = item.partition("=")
        amount = parse_memory(value).size_bytes if name.startswith(_SIZES) else parse_count(value)
        if not name or not equals or amount is None:
            raise FieldError("bad_tres", f"{item[:60]!r} is not a limit of a trackable resource")
        pairs.append((name, amount))
    return tuple(sorted(pairs))


def make_tres_limit(amounts: Mapping[str, int]) -> TresLimit:
    """Make pairs of amounts in Slurm's own units, in which sizes are MiB."""
    return tuple(sorted((n, a * MIB if n.startswith(_SIZES) else a) for n, a in amounts.items()))


def name_qos_flag(word: str) -> str:
    """Return a flag of a QoS as sacctmgr(1) writes it; one that this does not know as it is."""
    return _QOS_FLAGS.get(word, word)


def read_names(text: str) -> tuple[str, ...]:
    """Read a comma-separated list of names, sorted; nothing for `ALL` and for no value."""
    return () if text in NOTHING or text.upper() == "ALL" else tuple(sorted(filter(None, text.split(","))))


def first_line(text: str) -> str:
    """Return the first line of what somebody wrote."""
    return text.strip().partition("\n")[0].strip()

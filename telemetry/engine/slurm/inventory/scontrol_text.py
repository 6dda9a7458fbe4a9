"""Readers of what `scontrol show nodes|partitions` and `sinfo` print as text: nodes and partitions.

One odd record spoils the whole reading: half a cluster is no cluster. What people write (reasons, comments) stands
behind all that is read here, so that nothing they write can pose as a field.

Sources: scontrol(1), sinfo(1); 22.05 live, 24.11 and 25.11 as recorded.
"""

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Final

from telemetry.engine.slurm.errors import FieldError, FormatError
from telemetry.engine.slurm.inventory.forms import Form, Node, Partition, Reading
from telemetry.engine.slurm.inventory.values import (
    MIB,
    NOTHING,
    count_gpus,
    read_gres,
    read_names,
    read_node_state,
    read_tres_limit,
)
from telemetry.engine.slurm.values import parse_count, parse_duration

NODES_COMMAND: Final = ("scontrol", "--details", "--all", "show", "nodes", "--oneliner")
PARTITIONS_COMMAND: Final = ("scontrol", "--all", "show", "partitions", "--oneliner")
SINFO_FORMAT: Final = "NodeList:|,Partition:|,StateComplete:|,CPUs:|,Memory:|,Gres:|,GresUsed:|"
SINFO_COMMAND: Final = ("sinfo", "--all", "--noheader", "--Node", "--Format", SINFO_FORMAT)
# What people write; it stands behind all that Slurm writes, and may look like it.
_WRITTEN: Final = re.compile(r"\s(?:Reason|Comment|Extra)=.*", re.DOTALL)
_REASON: Final = re.compile(r"\sReason=(.*?)(?: \[[^\s\[\]]*@[^\s\[\]]*\]|\s+(?:Comment|Extra)=|\s*$)", re.DOTALL)


def read_nodes(text: str) -> Reading[Node]:
    """Read what `scontrol show nodes` printed, with or without `--oneliner` and `--details`.

    Errors: FormatError `not_scontrol`, `empty_inventory`.
    """
    return _read(text, "NodeName", _node)


def read_partitions(text: str) -> Reading[Partition]:
    """Read what `scontrol show partitions` printed, with or without `--oneliner`. Errors: as `read_nodes`."""
    return _read(text, "PartitionName", _partition)


def read_sinfo(text: str) -> Reading[Node]:
    """Read what `SINFO_COMMAND` printed: a line per node and partition. It says no reason. Errors: as `read_nodes`."""
    found: dict[str, Node] = {}
    for line in filter(str.strip, text.splitlines()):
        try:
            node = _sinfo_node(line)
        except FieldError as error:
            raise FormatError("not_sinfo", f"{error.detail}: {line[:200]!r}.") from error
        before = found.get(node.name, node)
        partitions = tuple(sorted({*before.partitions, *node.partitions}))
        found[node.name] = node._replace(partitions=partitions)
    return Reading(_some(tuple(found.values()), "sinfo"))


def _some(rows: tuple[Form, ...], who: str) -> tuple[Form, ...]:
    if not rows:
        raise FormatError("empty_inventory", f"{who} named nothing: an empty answer is no empty cluster.")
    return rows


def _read(text: str, first: str, build: Callable[[str, str], Form]) -> Reading[Form]:
    starts = [match.start() for match in re.finditer(rf"^{first}=", text, re.MULTILINE)]
    if text[: starts[0] if starts else None].strip():
        raise FormatError("not_scontrol", f"This is not what scontrol prints: {text.strip()[:200]!r}.")
    rows = []
    for start, end in pairwise([*starts, len(text)]):
        record = text[start:end].rstrip()
        try:
            rows.append(build(_field(record, first), record))
        except FieldError as error:
            raise FormatError("not_scontrol", f"{error.detail}: {record[:200]!r}.") from error
    return Reading(_some(tuple(rows), "scontrol"))


def _field(record: str, name: str, default: str | None = None) -> str:
    """Return a value by its name; the first one, where a name stands twice."""
    match = re.search(rf"(?:^|\s){name}=(\S*)", record)
    if match is None and default is None:
        raise FieldError("missing_field", f"There is no {name}")
    return match[1] if match else default or ""


def _count(field: Callable[[str], str], name: str) -> int:
    count = parse_count(field(name))
    if count is None:
        raise FieldError("bad_count", f"{name} is empty")
    return count


def _node(name: str, record: str) -> Node:
    written = _WRITTEN.search(record)
    record, told = (record[: written.start()], written[0]) if written else (record, "")
    field, reason = partial(_field, record), _REASON.match(told)
    state, flags = read_node_state(field("State"))
    gpus, types = count_gpus(read_gres(field("Gres")))
    return Node(
        name=name,
        state=state,
        flags=flags,
        cpus=_count(field, "CPUTot"),
        memory_bytes=_count(field, "RealMemory") * MIB,
        gpus=gpus,
        gpu_types=types,
        gpus_used=_used(gpus, _field(record, "GresUsed", ""), field("CfgTRES"), field("AllocTRES")),
        partitions=read_names(_field(record, "Partitions", "")),
        reason=reason[1].partition("\n")[0].strip() if reason else "",
    )


def _used(gpus: int, gres_used: str, configured: str, allocated: str) -> int | None:
    """Count the GPUs in use; None where nobody counts: without details, and without GPUs among the TRES."""
    if not gpus:
        return 0
    if gres_used:
        return count_gpus(read_gres(gres_used))[0]
    if "gres/gpu" not in dict(read_tres_limit(configured)):
        return None
    return dict(read_tres_limit(allocated)).get("gres/gpu", 0)


def _partition(name: str, record: str) -> Partition:
    field = partial(_field, record)
    nodes, qos = field("Nodes"), field("QoS")
    return Partition(
        name=name,
        state=field("State").upper(),
        nodes="" if nodes in NOTHING else nodes,
        node_count=_count(field, "TotalNodes"),
        max_time_s=parse_duration(field("MaxTime")),
        is_default=field("Default") == "YES",
        allowed_accounts=read_names(_field(record, "AllowAccounts", "ALL")),
        denied_accounts=read_names(_field(record, "DenyAccounts", "")),
        allowed_qos=read_names(_field(record, "AllowQos", "ALL")),
        denied_qos=read_names(_field(record, "DenyQos", "")),
        qos="" if qos in NOTHING else qos,
        preempt_mode=field("PreemptMode"),
        is_hidden=_is_hidden(record),
    )


def _is_hidden(record: str) -> bool:
    """Say whether a partition is hidden from all, or from those who are in none of some groups."""
    return _field(record, "Hidden", "NO") != "NO" or _field(record, "AllowGroups", "ALL") != "ALL"


def _sinfo_node(line: str) -> Node:
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != SINFO_FORMAT.count("|") + 1 or fields[-1]:
        raise FieldError("too_few_columns", f"{len(fields) - 1} values for {SINFO_FORMAT.count('|')} columns")
    name, partition, state_text, cpus, memory, gres, used = fields[:-1]
    state, flags = read_node_state(state_text)
    gpus, types = count_gpus(read_gres(gres))
    return Node(
        name=name,
        state=state,
        flags=flags,
        cpus=parse_count(cpus) or 0,
        memory_bytes=(parse_count(memory) or 0) * MIB,
        gpus=gpus,
        gpu_types=types,
        gpus_used=count_gpus(read_gres(used))[0] if gpus else 0,
        partitions=read_names(partition.removesuffix("*")),
        reason=None,
    )

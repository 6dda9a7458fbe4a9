"""Readers of nodes, partitions, QoS and associations from dumps of PySlurm 25.11 objects (`to_dict()`, as JSON).

A dump is a mapping by name or a list. Of a QoS PySlurm tells the name alone; the state of a node comes as text.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from telemetry.engine.slurm.documents import Record, at, names, plain_number, plain_text
from telemetry.engine.slurm.errors import FieldError, FormatError
from telemetry.engine.slurm.inventory.forms import Association, Bound, Form, Limits, Node, Partition, Qos, Reading
from telemetry.engine.slurm.inventory.values import (
    MIB,
    count_gpus,
    first_line,
    make_tres_limit,
    read_node_state,
    read_tres_limit,
)
from telemetry.engine.slurm.pyslurm_tres import read_resources

Dump: TypeAlias = Mapping[str, Any] | list[Any]
# What the readers need of each object: a dump may hold more.
NODE_FIELDS: Final = (
    *("name", "state", "configured_gres", "allocated_gres", "total_cpus", "real_memory", "partitions", "reason"),
)
PARTITION_FIELDS: Final = (
    *("name", "state", "nodes", "total_nodes", "max_time", "is_default", "allowed_accounts", "denied_accounts"),
    *("allowed_qos", "denied_qos", "qos", "preempt_mode"),
)
QOS_FIELDS: Final = ("name",)
ASSOCIATION_FIELDS: Final = (
    *("cluster", "account", "parent_account", "user", "partition", "is_default", "qos", "group_tres", "group_jobs"),
    *("group_submit_jobs", "max_jobs", "max_submit_jobs", "group_tres_mins", "group_wall_time", "max_tres_per_job"),
    *("max_tres_per_node", "max_tres_mins_per_job", "max_wall_time_per_job"),
)
QOS_UNTOLD: Final = "PySlurm tells the names of QoS alone: their limits stay as they were last read, if ever."


def read_nodes(dump: Dump) -> Reading[Node]:
    """Read `pyslurm.Nodes`. Errors: FormatError `odd_record`, `empty_inventory`."""
    return _read(dump, _node)


def read_partitions(dump: Dump) -> Reading[Partition]:
    """Read `pyslurm.Partitions`. Errors: as `read_nodes`."""
    return _read(dump, _partition)


def read_qos(dump: Dump) -> Reading[Qos]:
    """Read `pyslurm.db.QualitiesOfService`: their names. Errors: as `read_nodes`."""
    reading = _read(dump, lambda record: Qos(plain_text(at(record, "name")), None, None, None))
    return reading._replace(warnings=(QOS_UNTOLD,))


def read_associations(dump: Dump) -> Reading[Association]:
    """Read `pyslurm.db.Associations`. Errors: as `read_nodes`."""
    return _read(dump, _association)


def _read(dump: Dump, build: Callable[[Record], Form]) -> Reading[Form]:
    rows = []
    for record in dump.values() if isinstance(dump, Mapping) else dump:
        try:
            rows.append(build(record))
        except FieldError as error:
            raise FormatError("odd_record", f"{error.detail}: {record!r:.200}.") from error
    if not rows:
        raise FormatError("empty_inventory", "PySlurm named nothing: an empty answer is no empty cluster.")
    return Reading(tuple(rows))


def _node(record: Record) -> Node:
    state, flags = read_node_state(plain_text(at(record, "state")))
    gpus, types = count_gpus(_amounts(record, "configured_gres"))
    used = _amounts(record, "allocated_gres")
    return Node(
        name=plain_text(at(record, "name")),
        state=state,
        flags=flags,
        cpus=_number(record, "total_cpus"),
        memory_bytes=_number(record, "real_memory") * MIB,
        gpus=gpus,
        gpu_types=types,
        gpus_used=(used["gpu"] if "gpu" in used else count_gpus(used)[0]) if gpus else 0,
        partitions=names(at(record, "partitions")),
        reason=first_line(plain_text(at(record, "reason"))),
    )


def _partition(record: Record) -> Partition:
    text, allowed = partial(_text, record), partial(_allowed, record)
    return Partition(
        name=text("name"),
        state=text("state"),
        nodes=text("nodes"),
        node_count=_number(record, "total_nodes"),
        max_time_s=_seconds(record, "max_time"),
        is_default=bool(at(record, "is_default")),
        allowed_accounts=allowed("allowed_accounts"),
        denied_accounts=allowed("denied_accounts"),
        allowed_qos=allowed("allowed_qos"),
        denied_qos=allowed("denied_qos"),
        qos=text("qos"),
        preempt_mode=text("preempt_mode"),
    )


def _association(record: Record) -> Association:
    text, limit = partial(_text, record), partial(_limit, record)
    seconds, tres = partial(_seconds, record), partial(_tres, record)
    user = text("user")
    return Association(
        cluster=text("cluster"),
        account=text("account"),
        parent=text("parent_account"),
        user=user,
        partition=text("partition"),
        is_default=bool(at(record, "is_default")) and bool(user),
        default_qos=None,
        qos=names(at(record, "qos")),
        limits=Limits(
            group=Bound(tres("group_tres"), limit("group_jobs"), limit("group_submit_jobs")),
            user=Bound(jobs=limit("max_jobs"), submitted=limit("max_submit_jobs")),
            group_tres_minutes=tres("group_tres_mins"),
            group_wall_s=seconds("group_wall_time"),
            job_tres=tres("max_tres_per_job"),
            node_tres=tres("max_tres_per_node"),
            job_tres_minutes=tres("max_tres_mins_per_job"),
            job_wall_s=seconds("max_wall_time_per_job"),
        ),
    )


def _text(record: Record, name: str) -> str:
    return plain_text(at(record, name))


def _number(record: Record, name: str) -> int:
    number = plain_number(at(record, name))
    if number is None:
        raise FieldError("bad_number", f"{name} is not set")
    return number


def _limit(record: Record, name: str) -> int | None:
    value = at(record, name)
    return None if value == "UNLIMITED" else plain_number(value)


def _seconds(record: Record, name: str) -> int | None:
    minutes = _limit(record, name)
    return None if minutes is None else minutes * 60


def _allowed(record: Record, name: str) -> tuple[str, ...]:
    """Return who is allowed or denied: PySlurm says ALL of both where nobody is named."""
    said = names(at(record, name))
    return () if said == ("ALL",) else said


def _amounts(record: Record, name: str) -> dict[str, int]:
    value = at(record, name)
    if not isinstance(value, dict):
        raise FieldError("bad_gres", f"{name} is {value!r:.60}: convert PySlurm's objects before they are dumped")
    return {key: plain_number(amount) or 0 for key, amount in value.items()}


def _tres(record: Record, name: str) -> tuple[tuple[str, int], ...]:
    value = at(record, name)
    if isinstance(value, str) and "=" in value:
        return read_tres_limit(value)
    return make_tres_limit(read_resources(value))

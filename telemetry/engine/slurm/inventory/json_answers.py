"""Readers of nodes, partitions, QoS and associations from Slurm's JSON, of its commands and of slurmrestd alike.

What a dialect does not say is None in the forms: which partition is the default and how it preempts.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from telemetry.engine.slurm.documents import (
    Dialect,
    Document,
    Record,
    at,
    build_all,
    names,
    plain_number,
    plain_text,
    read_document,
    tres_amounts,
)
from telemetry.engine.slurm.errors import FieldError, FormatError
from telemetry.engine.slurm.inventory.forms import Association, Bound, Form, Limits, Node, Partition, Qos, Reading
from telemetry.engine.slurm.inventory.values import (
    MIB,
    count_gpus,
    first_line,
    make_tres_limit,
    name_qos_flag,
    read_gres,
    read_names,
    split_node_state,
)

# Of the flags of a QoS those that speak of a change to it, not of the QoS.
_NO_FLAGS: Final = {"NOT_SET", "ADD", "REMOVE", "DELETED"}


def read_nodes(text: str) -> Reading[Node]:
    """Read `scontrol show nodes --json`, slurmrestd's nodes, or `sinfo --json` of 22.05.

    Errors: FormatError, those of `documents.read_document`, `odd_record`, `grouped_nodes`, `empty_inventory`.
    """
    document = read_document(text, "nodes", "sinfo")
    if document.key == "sinfo":
        raise FormatError(
            "grouped_nodes", "sinfo of this version tells of groups of nodes, not of nodes.",
            remedy="Ask with: scontrol show nodes --json",
        )  # fmt: skip
    return _reading(document, _node)


def read_partitions(text: str) -> Reading[Partition]:
    """Read `scontrol show partitions --json` or slurmrestd's partitions. Errors: as `read_nodes`."""
    return _reading(read_document(text, "partitions"), _partition)


def read_qos(text: str) -> Reading[Qos]:
    """Read `sacctmgr show qos --json` or slurmrestd's. Errors: as `read_nodes`."""
    return _reading(read_document(text, "qos"), _qos)


def read_associations(text: str) -> Reading[Association]:
    """Read `sacctmgr show assoc --json` or slurmrestd's. Errors: as `read_nodes`."""
    return _reading(read_document(text, "associations"), _association)


def _reading(document: Document, build: Callable[[Record, Dialect], Form]) -> Reading[Form]:
    rows = build_all(document, build)
    if not rows:
        raise FormatError("empty_inventory", f"It names no {document.key}: an empty answer is no empty cluster.")
    return Reading(rows, document.envelope.warnings)


def _node(record: Record, dialect: Dialect) -> Node:
    words = dialect.words(at(record, "state"))
    if dialect.is_plain:
        words = [*words, *names(at(record, "state_flags"))]
    state, flags = split_node_state(words)
    gpus, types = count_gpus(read_gres(plain_text(at(record, "gres"))))
    return Node(
        name=plain_text(at(record, "name")),
        state=state,
        flags=flags,
        cpus=_amount(record, "cpus"),
        memory_bytes=_amount(record, "real_memory") * MIB,
        gpus=gpus,
        gpu_types=types,
        gpus_used=count_gpus(read_gres(plain_text(at(record, "gres_used"))))[0] if gpus else 0,
        partitions=names(at(record, "partitions")),
        reason=first_line(plain_text(at(record, "reason"))),
    )


def _amount(record: Record, path: str) -> int:
    amount = plain_number(at(record, path))
    if amount is None:
        raise FieldError("bad_number", f"{path} is not set")
    return amount


def _partition(record: Record, dialect: Dialect) -> Partition:
    text = partial(_text, record)
    minutes = dialect.number(at(record, "maximums.time"))
    return Partition(
        name=text("name"),
        state="+".join(dialect.words(at(record, "partition.state"))),
        nodes=text("nodes.configured"),
        node_count=_amount(record, "nodes.total"),
        max_time_s=None if minutes is None else minutes * 60,
        is_default=None,
        allowed_accounts=read_names(text("accounts.allowed")),
        denied_accounts=read_names(text("accounts.deny")),
        allowed_qos=read_names(text("qos.allowed")),
        denied_qos=read_names(text("qos.deny")),
        qos=text("qos.assigned"),
        preempt_mode=None,
    )


def _text(record: Record, path: str) -> str:
    return plain_text(at(record, path))


def _qos(record: Record, dialect: Dialect) -> Qos:
    limits = at(record, "limits")
    tres, count, seconds = partial(_tres, limits), partial(_count, limits, dialect), partial(_seconds, limits, dialect)
    is_full = dialect.tells_group_limits
    return Qos(
        name=_text(record, "name"),
        priority=dialect.number(at(record, "priority")),
        flags=tuple(sorted(name_qos_flag(flag) for flag in names(at(record, "flags")) if flag not in _NO_FLAGS)),
        limits=Limits(
            group=Bound(
                tres("max.tres.total"),
                count("max.active_jobs.count"),
                count("max.jobs.count") if is_full else None,
            ),
            user=Bound(tres("max.tres.per.user"), count("max.jobs.active_jobs.per.user"), count("max.jobs.per.user")),
            account=Bound(
                tres("max.tres.per.account"), count("max.jobs.active_jobs.per.account"), count("max.jobs.per.account")
            ),
            group_tres_minutes=tres("max.tres.minutes.total") if is_full else (),
            group_wall_s=seconds("max.wall_clock.per.qos"),
            job_tres=tres("max.tres.per.job"),
            node_tres=tres("max.tres.per.node"),
            job_tres_minutes=tres("max.tres.minutes.per.job"),
            job_wall_s=seconds("max.wall_clock.per.job"),
            job_min_tres=tres("min.tres.per.job"),
        ),
    )


def _association(record: Record, dialect: Dialect) -> Association:
    limits = at(record, "max")
    tres, count, seconds = partial(_tres, limits), partial(_count, limits, dialect), partial(_seconds, limits, dialect)
    user = _text(record, "user")
    return Association(
        cluster=_text(record, "cluster"),
        account=_text(record, "account"),
        parent=_text(record, "parent_account"),
        user=user,
        partition=_text(record, "partition"),
        is_default=bool(at(record, "is_default")) and bool(user),  # of accounts it says what means nothing
        default_qos=_text(record, "default.qos"),
        qos=names(at(record, "qos")),
        limits=Limits(
            group=Bound(tres("tres.total"), count("jobs.per.count"), count("jobs.per.submitted")),
            user=Bound(jobs=count("jobs.active"), submitted=count("jobs.total")),
            group_tres_minutes=tres("tres.group.minutes"),
            group_wall_s=seconds("per.account.wall_clock"),
            job_tres=tres("tres.per.job"),
            node_tres=tres("tres.per.node"),
            job_tres_minutes=tres("tres.minutes.per.job"),
            job_wall_s=seconds("jobs.per.wall_clock"),
        ),
    )


def _tres(record: Record, path: str) -> tuple[tuple[str, int], ...]:
    return make_tres_limit(tres_amounts(at(record, path)))


def _count(record: Record, dialect: Dialect, path: str) -> int | None:
    return dialect.number(at(record, path))


def _seconds(record: Record, dialect: Dialect, path: str) -> int | None:
    minutes = dialect.number(at(record, path))
    return None if minutes is None else minutes * 60

"""What a cluster is made of, asked at a slow pace and stored as it is now."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from django.db import DataError, models, transaction

from portal.core import clock
from portal.core.errors import DomainError
from principals import services as principal_services
from principals.actors import Actor
from principals.models import Cluster
from telemetry.engine.redaction import redact_raw
from telemetry.engine.slurm import inventory as forms
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.source import SlurmSource
from telemetry.models import InventoryReading, Node, Partition, Qos
from telemetry.services.ingest.feed import redaction_key
from telemetry.services.ingest.rows import find_misnamed
from telemetry.services.reader.asking import describe

Kind = InventoryReading.Kind
Taken = tuple[int, str]  # how many there are, and what is to be said of them
# Every installation has them, nobody's work is charged to them, and no lab stands behind them.
BUILT_IN_ACCOUNTS: Final = frozenset({"root"})

KEYS: Final = frozenset({"id", "cluster", "name"})


def take_inventory(*, actor: Actor, cluster: Cluster, source: SlurmSource, kind: Kind, slurm_name: str = "") -> int:
    """Ask Slurm for all there is of one kind and store it; return how many there are.

    `slurm_name` is what Slurm calls the cluster, where that is not our name of it.

    Errors: `SlurmUnavailable`, `FormatError`, `NotAllowed`: noted with the kind, and what was known before stays.
    """
    try:
        number, problem = _taken(actor, cluster, source, kind, slurm_name or cluster.name)
    except (DomainError, FormatError) as error:
        _note(cluster, kind, problem=describe(error)[:300])
        raise
    _note(cluster, kind, number=number, read=clock.now(), problem=problem[:300])
    return number


def _taken(actor: Actor, cluster: Cluster, source: SlurmSource, kind: Kind, slurm_name: str) -> Taken:
    try:
        if kind == Kind.ASSOCIATIONS:
            return _take_associations(actor, cluster, source.associations(slurm_name))
        return _TAKERS[kind](cluster, source)
    except DataError as error:  # a name or number that no column can hold: what is known stays
        raise FormatError(
            "out_of_range", f"Slurm told something about {kind.label.lower()} that is too long."
        ) from error


def _note(cluster: Cluster, kind: Kind, **found: Any) -> None:
    InventoryReading.objects.update_or_create(cluster=cluster, kind=kind, defaults=found)


def _take_nodes(cluster: Cluster, source: SlurmSource) -> Taken:
    reading = source.nodes()
    return _store(cluster, Node, map(_node_values, reading.rows)), " ".join(reading.warnings)


def _node_values(node: forms.Node) -> dict[str, Any]:
    return node._asdict() | {
        "flags": list(node.flags), "gpu_types": dict(node.gpu_types), "partitions": list(node.partitions),
        "reason": redact_raw(node.reason or "", key=redaction_key(), keep=200)[0],  # people write it
    }  # fmt: skip


def _take_partitions(cluster: Cluster, source: SlurmSource) -> Taken:
    reading = source.partitions()
    return _store(cluster, Partition, map(_partition_values, reading.rows)), " ".join(reading.warnings)


def _partition_values(partition: forms.Partition) -> dict[str, Any]:
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in partition._asdict().items()}
    return values | {"preempt_mode": partition.preempt_mode or ""}


def _take_qos(cluster: Cluster, source: SlurmSource) -> Taken:
    reading = source.qos()
    return _store(cluster, Qos, map(_qos_values, reading.rows)), " ".join(reading.warnings)


def _qos_values(qos: forms.Qos) -> dict[str, Any]:
    if qos.limits is None:  # which the source does not tell: what is known of them stays
        return {"name": qos.name}
    return qos._asdict() | {"flags": list(qos.flags or ()), "limits": forms.describe_limits(qos.limits)}


def _take_associations(actor: Actor, cluster: Cluster, told_of: forms.Reading[forms.Association]) -> Taken:
    rows = [each for each in told_of.rows if each.user and each.account not in BUILT_IN_ACCOUNTS]
    faults = [find_misnamed(each.user, each.account, each.partition, named="", cluster=cluster.name) for each in rows]
    told = [
        principal_services.ToldAssociation(each.user, each.account, each.partition, each.qos, bool(each.is_default))
        for each, fault in zip(rows, faults, strict=True)
        if fault is None
    ]
    if told:  # a cluster without users has associations of accounts alone
        principal_services.refresh_associations(actor=actor, cluster=cluster, told=told)
    reasons = Counter(fault[1] for fault in faults if fault is not None)
    return len(told), " ".join(f"Left out {number}: {reason}." for reason, number in reasons.items())


_TAKERS: Final[dict[str, Callable[[Cluster, SlurmSource], Taken]]] = {
    Kind.NODES: _take_nodes,
    Kind.PARTITIONS: _take_partitions,
    Kind.QOS: _take_qos,
}


def _store(cluster: Cluster, model: type[models.Model], told: Iterable[dict[str, Any]]) -> int:
    """Make the rows of a cluster what was told: write those that differ, let go of those that are told no more."""
    wanted = {values["name"]: values for values in told}
    rows = model._default_manager.filter(cluster=cluster)
    # Compared before any lock is taken; nobody else writes here.
    stored = {row["name"]: row for row in rows.values()}
    changed = [values for name, values in wanted.items() if not values.items() <= stored.get(name, {}).items()]
    gone = stored.keys() - wanted.keys()
    if changed or gone:
        with transaction.atomic():
            rows.filter(name__in=gone).delete()
            model._default_manager.bulk_create(
                [model(cluster=cluster, **values) for values in changed], update_conflicts=True,
                unique_fields=("cluster", "name"),
                update_fields=[field.name for field in model._meta.fields if field.name not in KEYS],
            )  # fmt: skip
    return len(wanted)

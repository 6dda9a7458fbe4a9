"""What Slurm says about who may charge which account: kept beside the people, whom it never takes away."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from django.db import transaction

from portal.core import audit, clock
from portal.core.errors import Invalid
from principals import permissions
from principals.actors import Actor
from principals.models import Association, Cluster
from principals.services.directory import Directory

AT_A_TIME: Final = 1000
NAMED: Final = 50  # of the changes in an audit row, by name
_FIELDS: Final = ("qos", "is_default", "ended")

Key: TypeAlias = tuple[int, int, str]  # ids of login and account, and the partition
Rows = dict[str, Association]


class ToldAssociation(NamedTuple):
    """An association as Slurm tells it; an empty `partition` is any."""

    login: str
    account: str
    partition: str = ""
    qos: tuple[str, ...] = ()
    is_default: bool = False


class AssociationChanges(NamedTuple):
    """How many associations came, changed (or came back), and ended."""

    created: int = 0
    changed: int = 0
    ended: int = 0


def refresh_associations(*, actor: Actor, cluster: Cluster, told: Iterable[ToldAssociation]) -> AssociationChanges:
    """Store every association of a cluster; those that are not told any more are marked as ended.

    Logins and accounts that are new are made, an account with a lab of its name. One audit row where anything changed.
    Errors: `NotAllowed`; `Invalid` `no_associations` where none is told: that is no cluster, and would end all of them.
    """
    permissions.require(actor, "facility.run")
    directory, now = Directory(cluster), clock.now()
    # Names are made one by one, outside of the transaction: the first time there may be thousands.
    wanted = {
        (directory.user_id(each.login), directory.account_ids(each.account)[0], each.partition): each for each in told
    }
    if not wanted:
        raise Invalid("Slurm told of no association.", code="no_associations")
    with transaction.atomic():
        stored = Association.objects.filter(account__cluster=cluster).select_related("cluster_user", "account")
        known = {(row.cluster_user_id, row.account_id, row.partition): row for row in stored}
        created, changed = _take(wanted, known)
        ended = _end([known[key] for key in known.keys() - wanted.keys()], now)
        Association.objects.bulk_create(created.values(), batch_size=AT_A_TIME)
        Association.objects.bulk_update([*changed.values(), *ended.values()], _FIELDS, batch_size=AT_A_TIME)
        changes = AssociationChanges(len(created), len(changed), len(ended))
        if any(changes):
            names = {name: rows for name, rows in zip(changes._fields, (created, changed, ended), strict=True) if rows}
            audit.record(
                actor=actor.ref, verb="association.refresh", object_kind="cluster", object_id=cluster.pk,
                object_label=cluster.name,
                after={name: {"count": len(rows), "some": sorted(rows)[:NAMED]} for name, rows in names.items()},
            )  # fmt: skip
    return changes


def _take(wanted: Mapping[Key, ToldAssociation], known: Mapping[Key, Association]) -> tuple[Rows, Rows]:
    """Return the rows that are new, and those that say something else now, by what they are called."""
    created, changed = Rows(), Rows()
    for key, each in wanted.items():
        row, values = known.get(key), (list(each.qos), each.is_default, None)
        if row is not None and values == (row.qos, row.is_default, row.ended):
            continue
        rows = changed if row is not None else created
        row = row or Association(cluster_user_id=key[0], account_id=key[1], partition=key[2])
        row.qos, row.is_default, row.ended = values
        rows[_label(each.login, each.account, each.partition)] = row
    return created, changed


def _end(gone: Iterable[Association], now: datetime) -> Rows:
    """Mark as ended what is told no more."""
    ended = Rows()
    for row in gone:
        if row.ended is None:
            row.ended = now
            ended[_label(row.cluster_user.login, row.account.name, row.partition)] = row
    return ended


def _label(login: str, account: str, partition: str) -> str:
    return f"{login}@{account}" + (f" in {partition}" if partition else "")

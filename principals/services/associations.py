"""What Slurm says about who may charge which account: kept beside the people, whom it never takes away."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from django.db import transaction

from portal.core import audit, clock
from portal.core.errors import Invalid
from principals import permissions
from principals.actors import Actor
from principals.models import Association, Cluster
from principals.services.directory import Directory

AT_A_TIME: Final = 500  # written in one transaction
NAMED: Final = 50  # of the changes in an audit row, by name
_FIELDS: Final = ("qos", "is_default", "ended")

Key: TypeAlias = tuple[int, int, str]  # ids of login and account, and the partition


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


class _Change(NamedTuple):
    kind: str  # a field of AssociationChanges
    label: str
    row: Association


def refresh_associations(*, actor: Actor, cluster: Cluster, told: Iterable[ToldAssociation]) -> AssociationChanges:
    """Store every association of a cluster; those that are not told any more are marked as ended.

    Logins and accounts that are new are made, an account with a lab of its name. What changed is written in parts, each
    with its audit row: but for the first time there is one part, or none. One caller at a time for a cluster.
    Errors: `NotAllowed`; `Invalid` `no_associations` where none is told: that is no cluster, and would end all of them.
    """
    permissions.require(actor, "facility.run")
    directory = Directory(cluster)
    wanted = {
        (directory.user_id(each.login), directory.account_ids(each.account)[0], each.partition): each for each in told
    }
    if not wanted:
        raise Invalid("Slurm told of no association.", code="no_associations")
    # Compared before any lock is taken: almost always nothing changed.
    stored = Association.objects.filter(account__cluster=cluster).select_related("cluster_user", "account")
    known = {(row.cluster_user_id, row.account_id, row.partition): row for row in stored}
    gone = [known[key] for key in known.keys() - wanted.keys()]
    changes = [*_taken(wanted, known), *_ended(gone, clock.now())]
    for first in range(0, len(changes), AT_A_TIME):
        _write(actor, cluster, changes[first : first + AT_A_TIME])
    counted = Counter(change.kind for change in changes)
    return AssociationChanges(**counted)


def _write(actor: Actor, cluster: Cluster, changes: Sequence[_Change]) -> None:
    named: dict[str, list[str]] = {}
    for change in changes:
        named.setdefault(change.kind, []).append(change.label)
    with transaction.atomic():
        Association.objects.bulk_create([each.row for each in changes if each.kind == "created"])
        Association.objects.bulk_update([each.row for each in changes if each.kind != "created"], _FIELDS)
        audit.record(
            actor=actor.ref, verb="association.refresh", object_kind="cluster", object_id=cluster.pk,
            object_label=cluster.name,
            after={kind: {"count": len(labels), "some": sorted(labels)[:NAMED]} for kind, labels in named.items()},
        )  # fmt: skip


def _taken(wanted: Mapping[Key, ToldAssociation], known: Mapping[Key, Association]) -> Iterator[_Change]:
    """Find the associations that are new, and those that say something else now."""
    for key, each in wanted.items():
        row, values = known.get(key), (list(each.qos), each.is_default, None)
        if row is not None and values == (row.qos, row.is_default, row.ended):
            continue
        kind = "created" if row is None else "changed"
        row = row or Association(cluster_user_id=key[0], account_id=key[1], partition=key[2])
        row.qos, row.is_default, row.ended = values
        yield _Change(kind, _label(each.login, each.account, each.partition), row)


def _ended(gone: Iterable[Association], now: datetime) -> Iterator[_Change]:
    """Mark as ended what is told no more."""
    for row in gone:
        if row.ended is None:
            row.ended = now
            yield _Change("ended", _label(row.cluster_user.login, row.account.name, row.partition), row)


def _label(login: str, account: str, partition: str) -> str:
    return f"{login}@{account}" + (f" in {partition}" if partition else "")

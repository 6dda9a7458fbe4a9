"""What squeue printed of somebody's own jobs, read back for one cluster."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from portal.core import clock
from portal.core.errors import DomainError, Invalid, NotAllowed
from principals.actors import Actor
from principals.models import Cluster, ClusterUser
from telemetry.models import Job, Partition, QueueSheet, SlurmReader

FRESH: Final = timedelta(seconds=60)
RETRY_S: Final = 5
_ASK_SLURM: Final = "Ask Slurm’s own command; `gatehouse squeue` does."


class QueueUnknown(DomainError):
    """The portal does not know the queue, or not as it is now."""

    status, title, code = 409, "The queue is not known", "queue_unknown"


@dataclass(frozen=True)
class OwnQueue:
    """The rows of somebody's own jobs, and since when they are true."""

    cluster: Cluster
    logins: Sequence[str]
    shown: datetime
    rows: Sequence[Sequence[str | None]]
    ended: Sequence[int]
    open: Sequence[str]  # partitions that squeue hides from nobody


def require_own_cluster(actor: Actor, name: str) -> tuple[Cluster, dict[str, int]]:
    """Return the cluster that somebody has login names on, and these with their keys.

    An empty name means the only one. Errors: `NotAllowed` for who is no person's agent, `Invalid`.
    """
    if actor.user is None:
        raise NotAllowed(
            "Only who has jobs of its own asks for them.", code="no_login_name", remedy="Send an agent’s token."
        )
    own: dict[Cluster, dict[str, int]] = {}
    for each in ClusterUser.objects.filter(user=actor.user).select_related("cluster").order_by("login"):
        own.setdefault(each.cluster, {})[each.login] = each.pk
    fitting = [cluster for cluster in own if not name or cluster.is_named(name)]
    if len(fitting) != 1:
        names = ", ".join(sorted(cluster.name for cluster in own))
        raise Invalid(
            "It is not clear which cluster is meant." if len(fitting) else "No login name of yours is known there.",
            code="cluster_unclear", remedy=f"Name one by `cluster`: {names or 'none is known yet'}.",
        )  # fmt: skip
    return fitting[0], own[fitting[0]]


def own_queue(actor: Actor, *, cluster_name: str, jobs: Collection[int]) -> OwnQueue:
    """Return what squeue printed of the actor's own jobs, and which of the `jobs` asked about are its own and gone.

    Errors: those of `require_own_cluster`, `QueueUnknown` where no squeue was asked within a minute.
    """
    cluster, logins = require_own_cluster(actor, cluster_name)
    shown = require_fresh(SlurmReader.objects.filter(cluster=cluster).first())
    sheets = dict(
        QueueSheet.objects.visible_to(actor).filter(cluster_user__in=logins.values())
        .values_list("cluster_user__login", "rows")
    )  # fmt: skip
    if sheets.keys() != logins.keys() or None in sheets.values():
        raise queue_not_kept()
    rows = [row for login in sorted(sheets) for row in sheets[login] or ()]
    return OwnQueue(cluster, sorted(logins), shown, rows, _ended(logins.values(), jobs, shown), _open(cluster))


def require_fresh(reader: SlurmReader | None) -> datetime:
    """Return when squeue was asked for what is kept. Errors: `QueueUnknown` where that is more than a minute ago."""
    shown = reader.shown if reader else None
    if shown is None or not timedelta(0) <= clock.now() - shown + timedelta(seconds=RETRY_S) <= FRESH:
        raise QueueUnknown(
            "Nobody has looked at this cluster’s queue within a minute.", remedy=_ASK_SLURM, retry_after_s=RETRY_S
        )
    return shown


def queue_not_kept() -> QueueUnknown:
    """Return the refusal to tell of login names that nobody keeps sheets of."""
    return QueueUnknown(
        "Not all of your login names are looked after.", code="queue_not_kept", remedy=_ASK_SLURM,
        retry_after_s=RETRY_S,
    )  # fmt: skip


def _ended(logins: Collection[int], jobs: Collection[int], shown: datetime) -> list[int]:
    """Return those of the ids under which all that is known has ended, and was known to before the queue was read."""
    if not jobs:
        return []
    own = Job.objects.filter(Q(raw_id__in=jobs) | Q(array_job_id__in=jobs), cluster_user__in=logins)
    ends: dict[int, bool] = {}
    for raw_id, array, end in own.values_list("raw_id", "array_job_id", "end"):
        is_over = end is not None and end <= shown
        for job in {each for each in (raw_id, array) if each is not None} & set(jobs):
            ends[job] = ends.get(job, True) and is_over
    return sorted(job for job, is_over in ends.items() if is_over)


def is_own(logins: Collection[int], jobs: Collection[int]) -> bool:
    """Say whether every id is one of a job of these login names that the portal has heard of."""
    own = Job.objects.filter(Q(raw_id__in=jobs) | Q(array_job_id__in=jobs), cluster_user__in=logins)
    return {each for pair in own.values_list("raw_id", "array_job_id") for each in pair} >= set(jobs)


def _open(cluster: Cluster) -> list[str]:
    """Return the partitions whose jobs squeue hides from nobody, as far as it was told."""
    return list(
        Partition.objects.filter(cluster=cluster, is_hidden=False).order_by("name").values_list("name", flat=True)
    )

"""Marks of what is to be recomputed."""

from collections.abc import Iterable
from datetime import date

from principals.models import Cluster
from telemetry.models import RollupDirty


def mark_dirty(cluster: Cluster, pairs: Iterable[tuple[date, int]]) -> None:
    """Note (UTC day, ClusterUser id) pairs for recomputation, in the caller's transaction."""
    rows = [RollupDirty(cluster=cluster, day=day, cluster_user_id=user) for day, user in pairs]
    RollupDirty.objects.bulk_create(rows, ignore_conflicts=True)


def refresh(cluster: Cluster | None = None) -> int:
    """Recompute what is marked."""
    return 0

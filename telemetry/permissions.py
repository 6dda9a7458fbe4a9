"""Who may feed a cluster's telemetry, and who may listen to its jobs."""

from portal.core.errors import Invalid, NotAllowed
from principals.actors import Actor
from principals.models import Cluster

SCOPE_OF_KIND = {
    "jobs": "ingest:jobs", "sessions": "ingest:sessions", "gpu": "ingest:gpu", "activity": "ingest:activity",
    "gateway": "ingest:activity", "events": "ingest:events",
}  # fmt: skip


def may_feed(actor: Actor, kind: str, cluster_name: str) -> bool:
    """Say whether `actor` may send records of `kind` (a key of `SCOPE_OF_KIND`) for a cluster.

    The system itself and staff may; a service with the scope may, for any cluster or for the one it is bound to.
    """
    if actor.is_system or (actor.is_person and actor.is_research_computing):
        return True
    if actor.service is None or SCOPE_OF_KIND[kind] not in actor.scopes:
        return False
    bound = actor.service.cluster
    return bound is None or bound.is_named(cluster_name)


def require_feed(actor: Actor, kind: str, cluster_name: str) -> None:
    """Raise unless `actor` may feed the cluster of that name.

    Errors: `Invalid` `cluster_unknown` where a bound service names a cluster that there is not, `NotAllowed`
    `cluster_not_allowed` where it names another one, `not_allowed` for everybody else.
    """
    if may_feed(actor, kind, cluster_name):
        return
    bound = actor.service.cluster if actor.service else None
    if bound is None or SCOPE_OF_KIND[kind] not in actor.scopes:
        raise NotAllowed(f"{actor.ref.label or 'You'} may not send {kind}.", code="not_allowed")
    remedy = f"Send records of {bound.name}, or ask staff for a service account that is not bound to a cluster."
    if not Cluster.objects.named(cluster_name).exists():
        raise Invalid(f"There is no cluster {cluster_name[:40]}.", code="cluster_unknown", remedy=remedy)
    raise NotAllowed(f"This service may send for {bound.name} only.", code="cluster_not_allowed", remedy=remedy)

"""The sessions that an agent's harness checked in and that go on, beside what a collector saw on their nodes."""

from typing import Any

from django.conf import settings

from portal.dashboard.formats import counted, duration
from principals import services as principal_services
from principals.engine.concurrency import Limit
from principals.models import Agent
from principals.session_limits import session_limits

MOST = 20


def live_panel(agent: Agent) -> dict[str, Any] | None:
    """Return an agent's open check-ins with the standing of each node; None where there is none."""
    rows = list(principal_services.live_of(agent)[:MOST])
    if not rows:
        return None
    limits = session_limits()
    nodes = []
    clusters = {row.cluster_user.cluster for row in rows}
    for cluster in sorted(clusters, key=lambda cluster: cluster.name):
        on_login = {row.host for row in rows if row.cluster_user.cluster == cluster and row.raw_job_id is None}
        found = principal_services.on_nodes(agent.owner, cluster, sorted(on_login))
        for host, there in found.items():
            said = counted(there.declared, "session")
            title = f"{host}: {agent.owner.username} has {said} checked in, {there.seen} seen by the collector"
            over = any(limit.number < max(there.declared, there.seen) for limit in limits)
            nodes.append({"title": title, "words": _limit_words(limits), "over": over})
    silent = f"without a word for {duration(settings.SESSION_SILENT_S)} it has ended"
    return {"rows": rows, "nodes": nodes, "silent": silent}


def _limit_words(limits: list[Limit]) -> str:
    if not limits:
        return "The site sets no limit."
    least = limits[0]
    said = f"The site’s limit for a person on a login node is {least.number}"
    if least.binds:
        return f"{said}: more are refused."
    refused = next((f", more than {limit.number} are refused" for limit in limits if limit.binds), "")
    return f"{said}: more are advised against{refused}."

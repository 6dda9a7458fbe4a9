"""Jobs as a download: the rows of a list, all pages, streamed, at most `MOST_COUNTED` of them."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from portal.core import exports
from portal.dashboard.jobs.cells import seen_agents
from principals.web import PageRequest
from telemetry.engine.transitions import describe_outcome
from telemetry.models import Job
from telemetry.selectors import MOST_COUNTED

COLUMNS = (
    "cluster", "job_id", "raw_id", "job_name", "state", "outcome", "reason", "user", "account", "lab", "partition",
    "qos", "submit", "eligible", "start", "end", "elapsed_s", "timelimit_s", "array_tasks", "nodes", "cpus", "gpus",
    "mem_bytes", "exit_code", "exit_signal", "node_list", "actor", "actor_method", "actor_confidence", "harness",
    "agent", "campaign",
)  # fmt: skip
_OWN = tuple(
    name for name in COLUMNS if name not in ("cluster", "user", "account", "lab", "agent", "outcome")
)  # columns of the job itself
CHUNK = 2000


def export_jobs(request: PageRequest, kind: str, jobs: QuerySet[Job], *, name: str = "jobs") -> StreamingHttpResponse:
    """Stream jobs in the order given. Where there are more than `MOST_COUNTED`, the file's name says that it is cut."""
    rows = jobs.select_related("cluster", "cluster_user", "account", "lab")
    rows = rows.prefetch_related(seen_agents(request.actor))
    cut = jobs.order_by()[: MOST_COUNTED + 1].count() > MOST_COUNTED
    return exports.stream(
        request, kind, f"{name}-first-{MOST_COUNTED}" if cut else name, COLUMNS, _records(rows[:MOST_COUNTED])
    )


def _records(jobs: QuerySet[Job]) -> Iterator[dict[str, Any]]:
    for job in jobs.iterator(chunk_size=CHUNK):
        record = {name: getattr(job, name) for name in _OWN}
        yield record | {
            "cluster": job.cluster.name, "user": job.cluster_user.login, "lab": job.lab.name,
            "account": job.account.name if job.account else "", "agent": job.agent.name if job.agent else "",
            "outcome": describe_outcome(job.state, job.exit_code or 0, job.exit_signal or 0),
        }  # fmt: skip

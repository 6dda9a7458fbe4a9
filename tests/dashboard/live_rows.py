"""Jobs for tests of pages: rows that need no ingest."""

from datetime import timedelta
from itertools import count
from typing import Any

from portal.core import clock
from principals.models import ClusterUser, Lab
from telemetry.models import Job

_numbers = count(48_213_000)


def make_job(user: ClusterUser, lab: Lab, *, ago_s: int = 600, **fields: Any) -> Job:
    """A job submitted `ago_s` seconds ago; running or ended ones started 60 s later, ended ones ran 120 s."""
    number = next(_numbers)
    submit = clock.now().replace(microsecond=0) - timedelta(seconds=ago_s)
    state = fields.get("state", "PENDING")
    started = state not in ("PENDING", "CONFIGURING") and fields.pop("started", True)
    start = submit + timedelta(seconds=60) if started else None
    ended = state not in ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "RESIZING")
    end = (start or submit) + timedelta(seconds=120) if ended else None
    defaults: dict[str, Any] = {
        "raw_id": number, "job_id": str(number), "partition": "shared", "qos": "normal", "start": start, "end": end,
        "usage_end": end or start, "elapsed_s": 120 if end and start else 0, "timelimit_s": 7200, "nodes": 1,
        "cpus": 4, "digest": 0, "changed": end or start or submit, "state": state, "job_name": "npt_sweep",
        "node_list": "c0001" if started else "", "reason": "" if started else "Priority",
        "agent": fields["session"].agent if fields.get("session") else None,
    }  # fmt: skip
    return Job.objects.create(cluster=user.cluster, cluster_user=user, lab=lab, submit=submit, **(defaults | fields))

"""What `gatehouse squeue` and `gatehouse sacct` ask: the texts of one's own jobs, and a command that many share."""

import base64
import re
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from portal.core import clock
from portal.core.errors import Invalid
from portal.core.problems import answers
from principals.auth import actor_of
from telemetry import services
from telemetry.api.polls import AskAboutJobs
from telemetry.engine.slurm.printing import FACTS, KEYS
from telemetry.models import ShimUse
from telemetry.schemas.queue import AccountsOut, QueueOut, SharedCallIn, SharedCallOut
from telemetry.selectors.own_accounts import own_accounts
from telemetry.selectors.queue_sheets import RETRY_S, own_queue

router = Router()
MOST_JOBS = 500
_JOBS = re.compile(r"\d{1,10}(,\d{1,10})*\Z", re.ASCII)
ClusterName = Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9._-]*$")]


@router.get("/squeue", auth=AskAboutJobs(), response=answers(200, QueueOut))
def read_queue(
    request: HttpRequest, response: HttpResponse, cluster: ClusterName = "",
    jobs: Annotated[str, Query(max_length=6000)] = "",
) -> QueueOut:  # fmt: skip
    """Tell what squeue printed of the caller's own jobs, field by field, and when. No call to Slurm is made for it.

    `jobs` are ids that are asked about, divided by commas: `ended` are those of them that were the caller's own and
    that Slurm's queue no longer has. Rows stand in squeue's own order; a text is null where it cannot be told.
    `cluster` may be left out where the caller has login names on one only.
    """
    queue = own_queue(actor_of(request), cluster_name=cluster, jobs=_numbers(jobs))
    services.note_shim_use(queue.cluster, "squeue", ShimUse.Outcome.PRINTED)
    response["Retry-After"] = str(RETRY_S)
    return QueueOut(
        cluster=queue.cluster.name, logins=list(queue.logins), shown=queue.shown,
        age_s=max(0.0, (clock.now() - queue.shown).total_seconds()), retry_after_s=RETRY_S, fields=list(KEYS),
        rows=[list(row) for row in queue.rows], ended=list(queue.ended), open=list(queue.open),
    )  # fmt: skip


@router.get("/sacct", auth=AskAboutJobs(), response=answers(200, AccountsOut))
def read_accounts(
    request: HttpRequest, response: HttpResponse, login: Annotated[str, Query(max_length=64)],
    cluster: ClusterName = "", jobs: Annotated[str, Query(max_length=6000)] = "",
    since: Annotated[int, Query(ge=0, le=2**33)] = 0,
) -> AccountsOut:  # fmt: skip
    """Tell what accounting said of the jobs of one of the caller's login names, and when. No call to Slurm is made.

    `jobs` are ids divided by commas; without them it is of what stood or ended at `since` (seconds since 1970, UTC) or
    later. `known` are those ids under which every record is told, `behind` those of jobs that stand in the queue and
    are not stored yet. `since` in the answer: of every job since then something is known; null where nobody can say.
    """
    told = own_accounts(
        actor_of(request), cluster_name=cluster, login=login, jobs=_numbers(jobs), since_s=None if jobs else since
    )
    services.note_shim_use(told.cluster, "sacct", ShimUse.Outcome.PRINTED)
    response["Retry-After"] = str(RETRY_S)
    return AccountsOut(
        cluster=told.cluster.name, login=told.login, shown=told.shown,
        age_s=max(0.0, (clock.now() - told.shown).total_seconds()), retry_after_s=RETRY_S, fields=list(FACTS),
        rows=[list(row) for row in told.rows], known=list(told.known), behind=list(told.behind), since=told.since,
    )  # fmt: skip


def _numbers(jobs: str) -> set[int]:
    if jobs and (not _JOBS.match(jobs) or jobs.count(",") >= MOST_JOBS):
        raise Invalid(f"`jobs` are at most {MOST_JOBS} numbers, divided by commas.", code="jobs_malformed")
    return {int(job) for job in filter(None, jobs.split(","))}


@router.post("/shared-calls", auth=AskAboutJobs(), response=answers(200, SharedCallOut))
def share_call(request: HttpRequest, body: SharedCallIn) -> SharedCallOut:
    """Run squeue or sacct for the caller's own jobs: once for all who ask the same within a few seconds.

    What cannot be held to the caller's own jobs is refused with `not_shared`: the caller runs the command itself.
    """
    cluster, answer = services.answer_shared(
        actor=actor_of(request), cluster_name=body.cluster, program=body.program, arguments=body.arguments,
        login=body.login, reason=body.reason, zone=body.zone,
    )  # fmt: skip
    return SharedCallOut(
        cluster=cluster.name, out=base64.b64encode(answer.out).decode(), complaint=answer.complaint,
        status=answer.status, age_s=max(0.0, clock.now().timestamp() - answer.asked_s),
    )  # fmt: skip

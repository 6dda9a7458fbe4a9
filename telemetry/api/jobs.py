"""The jobs an agent may read: its owner's, and with `lab:read` its lab's; and the receipts that declare its own."""

import re
from datetime import UTC, datetime
from typing import Annotated

from django.db.models import Q
from django.http import HttpRequest
from ninja import Query, Router

from portal.core import live
from portal.core.errors import Invalid, NotFound
from portal.core.idempotency import idempotent
from portal.core.moments import Moment
from portal.core.paging import cut_page
from portal.core.problems import answers
from principals.actors import Actor
from principals.auth import actor_of, requires
from telemetry import services
from telemetry.api.polls import AskAboutJobs
from telemetry.engine.slurm.errors import FieldError
from telemetry.engine.slurm.job_ids import JobId
from telemetry.engine.transitions import describe_outcome
from telemetry.engine.waiting import read_asked
from telemetry.models import Job, SlurmReader
from telemetry.schemas import RawJobId
from telemetry.schemas.jobs import JobOut, JobPage, ReceiptOut, StandingOut, StandingsOut
from telemetry.selectors import JobFilter, JobStanding, find_standing, held_now, newest_by_raw_id, newest_first

router = Router()
OTHER = "other"
MOST_IDS = 200
MOST_RANGES = 40  # each is compared with all tasks of its array
_CURSOR = re.compile(r"(\d{1,12})\.(\d{1,18})\Z", re.ASCII)


@router.get("", auth=AskAboutJobs(), response=answers(200, JobPage))
def list_jobs(
    request: HttpRequest,
    state: Annotated[str, Query(max_length=16)] = "",
    since: Moment | None = None,
    campaign: Annotated[str, Query(max_length=100)] = "",
    agent: Annotated[str, Query(max_length=40)] = "",
    after: Annotated[str, Query(max_length=40)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> JobPage:
    """List jobs, newest submission first. `since` is a time of submission; `state` is one of Slurm's, or `active`.

    `active` is what Slurm can hold now: not what an old file called running. `agent` is the caller's own name: the jobs
    that are taken to be its own, by its receipts and its sessions.
    """
    actor = actor_of(request)
    jobs = Job.objects.visible_to(actor).select_related("cluster", "cluster_user", "account", "lab")
    if state:
        jobs = held_now(jobs.active()) if state == "active" else jobs.filter(state=state.upper())
    if since is not None:
        jobs = jobs.filter(submit__gte=since)
    if campaign:
        # A label is somebody's own words: an agent finds its owner's jobs by it, nobody else's.
        jobs = jobs.filter(campaign=campaign, cluster_user__user=actor.user)
    if after:
        submit, pk = _read_cursor(after)
        jobs = jobs.filter(Q(submit__lt=submit) | Q(submit=submit, pk__lt=pk))
    asked = JobFilter(agent=agent)
    page, last = cut_page(newest_first(asked.apply(jobs, actor), actor, asked), limit)
    cursor = f"{int(last.submit.timestamp())}.{last.pk}" if last else None
    return JobPage(items=[show_job(job, actor) for job in page], next=cursor)


@router.post("/receipts", auth=requires("jobs:declare"), response=answers(200, ReceiptOut))
@idempotent
def request_receipt(
    request: HttpRequest, cluster: Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9._-]*$")] = ""
) -> tuple[int, ReceiptOut]:
    """Give a receipt: jobs that name it in their comment are this agent's, more surely than any other evidence says.

    `cluster` may be left out where the lab has accounts on one only.
    """
    receipt = services.request_receipt(actor=actor_of(request), cluster_name=cluster)
    return 200, ReceiptOut(
        receipt=receipt.public_id, cluster=receipt.cluster.name, valid_until=receipt.valid_until,
        sbatch_options=[f"--comment={receipt.public_id}"],
    )  # fmt: skip


@router.get("/standing", auth=AskAboutJobs(), response=answers(200, StandingsOut))
def get_standing(
    request: HttpRequest,
    ids: Annotated[str, Query(min_length=1, max_length=8000, description="123, 123_4, 123_[1-5], 123+1; by spaces.")],
    cluster: Annotated[str, Query(max_length=64)] = "",
) -> StandingsOut:
    """Say how jobs stand now, by their ids as Slurm writes them, and up to which event that is. To wait for them,
    listen first, then ask this, then go by the events after `seq`. An agent's own person's jobs alone are known.
    """
    actor, asked = actor_of(request), _read_ids(ids)
    seq = live.newest_seq()  # before the jobs: what was told up to here had happened when they are read
    found = find_standing(actor, list(asked.values()), cluster=cluster)
    looked = dict(SlurmReader.objects.values_list("cluster_id", "looked"))
    return StandingsOut(
        seq=seq, items=[_show_standing(text, each, looked, actor) for text, each in zip(asked, found, strict=True)]
    )


def _read_ids(text: str) -> dict[str, JobId]:
    words = list(dict.fromkeys(text.split()))
    if len(words) > MOST_IDS:
        raise Invalid(
            f"More than {MOST_IDS} jobs were asked for.", code="too_many_jobs", remedy="Ask in several parts."
        )
    try:
        asked = {word: read_asked(word) for word in words}
    except FieldError as error:
        raise Invalid(
            f"{error.detail}.", code="job_id_malformed", remedy="Write 123, 123_4, 123_[1-5] or 123+1."
        ) from None
    if sum(each.array_spec is not None for each in asked.values()) > MOST_RANGES:
        raise Invalid(
            f"More than {MOST_RANGES} ranges of arrays were asked for.", code="too_many_ranges",
            remedy="Ask for the whole array by its number, or in several parts.",
        )  # fmt: skip
    return asked


def _show_standing(text: str, found: JobStanding, looked: dict[int, datetime | None], actor: Actor) -> StandingOut:
    standing, cluster = found.standing, found.cluster
    if standing is None or cluster is None:
        return StandingOut(asked=text, known=False)
    return StandingOut(
        asked=text, known=True, cluster=cluster.name, state=standing.state, over=standing.is_over,
        exit_status=standing.status, counts=standing.counts, looked=looked.get(cluster.pk),
        job=show_job(found.job, actor) if found.job else None,
    )  # fmt: skip


@router.get("/{cluster}/{raw_id}", auth=AskAboutJobs(), response=answers(200, JobOut))
def get_job(request: HttpRequest, cluster: str, raw_id: RawJobId) -> JobOut:
    """Return the newest record of a job by its raw job id (ids recycle, and a requeue makes a new record)."""
    actor = actor_of(request)
    job = newest_by_raw_id(actor, cluster, raw_id)
    if job is None:
        raise NotFound(
            "There is no such job that you may see.", code="job_unknown",
            remedy="Jobs show up as soon as the cluster's reader has seen them; an agent sees its owner's.",
        )  # fmt: skip
    return show_job(job, actor)


def _read_cursor(text: str) -> tuple[datetime, int]:
    match = _CURSOR.match(text)
    if match is None:
        raise Invalid("`after` is no cursor of ours.", code="cursor_malformed", remedy="Use `next` of the last page.")
    return datetime.fromtimestamp(min(int(match[1]), 10**11), UTC), int(match[2])


def show_job(job: Job, actor: Actor) -> JobOut:
    """Return a job as `actor` may see it: of another person's job no name and no words that people wrote."""
    agent = actor.agent.name if actor.agent is not None and job.agent_id == actor.agent.pk else ""
    own = actor.user is not None and job.cluster_user.user_id == actor.user.pk
    return JobOut(
        cluster=job.cluster.name, raw_id=job.raw_id, job_id=job.job_id, own=own,
        user=job.cluster_user.login if own else OTHER, account=job.account.name if job.account else "",
        lab=job.lab.name, partition=job.partition, qos=job.qos, state=job.state, reason=job.reason,
        outcome=describe_outcome(job.state, job.exit_code or 0, job.exit_signal or 0),
        submit=job.submit, start=job.start, end=job.end, elapsed_s=job.elapsed_s, timelimit_s=job.timelimit_s,
        nodes=job.nodes, cpus=job.cpus, gpus=job.gpus, mem_bytes=job.mem_bytes, exit_code=job.exit_code,
        exit_signal=job.exit_signal, actor=job.actor, actor_method=job.actor_method,
        actor_confidence=job.actor_confidence, harness=job.harness, agent=agent,
        campaign=job.campaign if own else "", job_name=job.job_name if own else "",
        work_dir=job.work_dir if own else "", submit_line=job.submit_line if own else "",
    )  # fmt: skip

"""Sessions by the API: a harness checks in, beats, and says when it ends.

The portal has it, for what a harness writes is cleaned of secrets before it is kept.
"""

from typing import Annotated

from django.conf import settings
from django.http import HttpRequest
from ninja import Path, Router

from portal.core import throttle
from portal.core.errors import Conflict, NotAllowed
from portal.core.idempotency import idempotent
from portal.core.problems import answers
from principals import services as principal_services
from principals.auth import actor_of, requires
from principals.models import Agent, ClusterUser, SessionCheckIn
from principals.schemas import BeginningIn, CheckedInOut, OnNodeOut, SessionList, SessionOut
from principals.services.sessions.checkins import Beginning
from security.services.cleaning import clean_text
from telemetry.models import Job

router = Router()
Id = Annotated[str, Path(pattern=r"^s_[0-9a-f]{20}$")]
SCOPE = "sessions:write"
CHECK_INS_PER_MINUTE = 30  # of one person's agents together: rows know a start by its second


@router.post("/sessions", auth=requires(SCOPE), response=answers(201, CheckedInOut), summary="Check in a session")
@idempotent
def check_in(request: HttpRequest, body: BeginningIn) -> tuple[int, CheckedInOut]:
    """Note that a session of this agent begins: who runs it is who the agent acts for.

    `warnings` says what is near or above the site's limit; where the limit binds, one too many answers 409
    `too_many_sessions`. Beat within `beat_within_s`, else the session is taken to have ended at its last beat.
    """
    agent = _agent(request)
    throttle.check(
        "check-in", str(agent.owner_id), limit=CHECK_INS_PER_MINUTE, what="check-ins",
        remedy="Wait as long as Retry-After says; a session that goes on beats.",
    )  # fmt: skip
    _require_job(agent, body)
    beginning = Beginning(
        harness=body.harness, host=body.host, pid=body.pid, cluster=body.cluster, login=body.login,
        harness_version=clean_text(body.harness_version), model=clean_text(body.model),
        directory=clean_text(body.directory), raw_job_id=body.job_id,
    )  # fmt: skip
    done = principal_services.check_in(actor=actor_of(request), beginning=beginning)
    limit = principal_services.session_limit()
    return 201, CheckedInOut(
        **_said(done.row).model_dump(),
        beat_within_s=settings.SESSION_SILENT_S,
        warnings=[f"{done.verdict.warning} {done.verdict.remedy}"] if done.verdict.warning else [],
        on_node=OnNodeOut(
            declared=done.on_node.declared, seen=done.on_node.seen, limit=limit.number,
            more_are="refused" if limit.binds else "advised against",
        ),
    )  # fmt: skip


@router.get("/sessions", auth=requires(SCOPE), response=answers(200, SessionList), summary="Its open sessions")
def list_sessions(request: HttpRequest) -> SessionList:
    """List the sessions that this agent checked in and that go on, newest first; at most 200."""
    return SessionList(items=[_said(row) for row in principal_services.live_of(_agent(request))[:200]])


@router.post(
    "/sessions/{session_id}/heartbeat", auth=requires(SCOPE), response=answers(200, SessionOut),
    summary="A session goes on",
)  # fmt: skip
def beat(request: HttpRequest, session_id: Id) -> SessionOut:
    """Note that a session goes on. One that has ended answers 409 `session_ended`: check in again."""
    return _said(principal_services.beat(actor=actor_of(request), public_id=session_id))


@router.post(
    "/sessions/{session_id}/end", auth=requires(SCOPE), response=answers(200, SessionOut), summary="A session ends"
)
def end(request: HttpRequest, session_id: Id) -> SessionOut:
    """Note that a session has ended. Ending it again changes nothing."""
    return _said(principal_services.check_out(actor=actor_of(request), public_id=session_id))


def _agent(request: HttpRequest) -> Agent:
    agent = actor_of(request).agent
    if agent is None:
        raise NotAllowed("This token is not an agent's.", code="not_an_agent", remedy="Use an agent's token.")
    return agent


def _require_job(agent: Agent, body: BeginningIn) -> None:
    """Refuse a job that is none of its person's, where being in one lifts a rule and the portal hears of jobs there.

    Errors: `Conflict`, in the same words for a job of somebody else, one that is over, and none.
    """
    limit = principal_services.session_limit()
    if body.job_id is None or not (agent.hosts or (limit.binds and limit.number)):
        return
    names = ClusterUser.objects.filter(user=agent.owner_id)
    if body.cluster:
        names = names.filter(cluster__name__iexact=body.cluster)
    going_on = Job.objects.filter(cluster__in=names.values("cluster"), end=None)
    theirs = going_on.filter(cluster_user__in=names, raw_id=body.job_id)
    if not theirs.exists() and going_on.exists():
        raise Conflict(
            f"The portal knows of no job {body.job_id} of {agent.owner.username} that goes on.", code="job_unknown",
            remedy="Say SLURM_JOB_ID of the job it runs in; one that just started is known within a minute.",
            retry_after_s=30, extra={"field": "job_id"},
        )  # fmt: skip


def _said(row: SessionCheckIn) -> SessionOut:
    return SessionOut(
        id=row.public_id, host=row.host, pid=row.pid, model=row.model, directory=row.directory, started=row.started,
        last_beat=row.last_beat, ended=row.ended, how_ended=row.how_ended, seen=bool(row.session.process),
    )  # fmt: skip

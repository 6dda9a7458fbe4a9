"""One job: its facts, how it ended in words, its times, and why it is taken to be somebody's."""

import re
from typing import Any
from urllib.parse import urlencode

from django.db.models import prefetch_related_objects
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render

from portal.dashboard.formats import duration
from portal.dashboard.jobs.cells import RELATED, JobRow, rows_of, seen_sessions, short_nodes
from portal.dashboard.shell import url_or_none
from principals.engine.harnesses import harness_name
from principals.models import AgentSession, SessionDeclaration
from principals.web import PageRequest, page
from telemetry import selectors
from telemetry.engine.attribution import METHOD_RECEIPT, METHOD_RECEIPT_DOUBTED
from telemetry.engine.receipts import receipts_of
from telemetry.engine.transitions import describe_outcome
from telemetry.figures.attribution import METHODS
from telemetry.models import Actor, Job, JobGpuUse, JobReceipt, JobState
from telemetry.selectors.job_filters import STATE_GROUPS

_MASK = re.compile(r"\[REDACTED:[^\]]{1,40}\]")
LOST = {*STATE_GROUPS["FAILED"], JobState.TIMEOUT, JobState.CANCELLED}


@page
def job(request: PageRequest, pk: int) -> HttpResponseBase:
    """Show one job to whoever may see it."""
    visible = Job.objects.visible_to(request.actor).select_related(*RELATED, "account", "batch")
    found = get_object_or_404(visible, pk=pk)
    row = rows_of([found], request.actor)[0]
    prefetch_related_objects([found], seen_sessions(request.actor))
    outcome = describe_outcome(found.state, found.exit_code or 0, found.exit_signal or 0)
    context = {
        "job": found, "row": row, "outcome": outcome[:1].upper() + outcome[1:],
        "facts_meta": "" if found.state in LOST else outcome, "entries": timeline_of(found),
        "method": METHODS[found.actor_method].sentence, "session": found.session,
        "told_by": _told_by(found.session),
        "harness": harness_name(found.harness) if found.harness else "", "masks": _MASK.findall(found.submit_line),
        "lessons_url": _lessons_url(outcome) if found.state in LOST else "",
        "others": _others(request, found), "nodes": short_nodes(found.node_list),
        "extra": sorted(found.extra.items()), "caution": found.state in LOST,
        "gpu_use": _gpu_use(found), "receipt": _receipt(request, found),
    }  # fmt: skip
    return render(request, "jobs/job.html", context)


@page
def job_by_id(request: PageRequest, cluster: str, raw_id: int) -> HttpResponseBase:
    """Go to the newest visible record of a raw job id: ids recycle, and a requeue makes a new record."""
    found = selectors.newest_by_raw_id(request.actor, cluster, raw_id)
    if found is None:
        raise Http404
    return redirect(found)


def _gpu_use(job: Job) -> dict[str, Any] | None:
    """Return what its GPUs were used for, and what would have done; None where nobody measured it."""
    use = JobGpuUse.objects.filter(job=job).first()
    if use is None:
        return None
    less = use.fit not in (JobGpuUse.Fit.WHOLE, JobGpuUse.Fit.UNKNOWN)
    note = f"{use.get_fit_display()} would have done: {use.fit_name}" if less else "means over the job"
    return {"compute": use.compute_percent / 100, "memory": use.memory_percent / 100, "note": note}


def _told_by(session: AgentSession | None) -> str:
    """Say who told of a session: a collector, whoever declared it, or both."""
    if session is None:
        return ""
    declaration = SessionDeclaration.objects.filter(session=session).first() if session.process else None
    return f"{session.source}, {declaration.source}" if declaration else session.source


def _receipt(request: PageRequest, job: Job) -> JobReceipt | None:
    """Return the receipt that declared it, where that decided and its agent may be seen."""
    if job.actor_method not in (METHOD_RECEIPT, METHOD_RECEIPT_DOUBTED):
        return None
    named = receipts_of(job.comment, job.extra)
    receipts = JobReceipt.objects.visible_to(request.actor).filter(
        public_id__in=named, cluster=job.cluster, agent__owner=job.cluster_user.user_id, agent__harness=job.harness
    )
    return receipts.select_related("agent").order_by("pk").last()


def _lessons_url(outcome: str) -> str:
    """Return the address of the lessons that fit how a job ended; "" while nobody serves them."""
    url = url_or_none("lessons")
    return f"{url}?{urlencode({'q': outcome})}" if url else ""


def _others(request: PageRequest, job: Job) -> list[JobRow]:
    """Return other records of the same raw id: earlier lives of a requeued job, or of a recycled number."""
    records = Job.objects.visible_to(request.actor).filter(cluster=job.cluster, raw_id=job.raw_id)
    return rows_of(records.exclude(pk=job.pk).order_by("-submit")[:10], request.actor)


def timeline_of(job: Job) -> list[dict[str, Any]]:
    """Return the times of a job as entries of a timeline, newest first."""
    by = {Actor.AGENT: "agent", Actor.HUMAN: "human"}.get(Actor(job.actor), "system")
    entries = [{"at": job.submit, "by": by, "what": "Submitted", "note": f"to {job.partition or 'no partition'}"}]
    if job.eligible and job.eligible > job.submit:
        note = f"{duration(job.eligible - job.submit)} after submission"
        entries.append({"at": job.eligible, "by": "system", "what": "Could have started", "note": note})
    if job.start:
        entries.append({"at": job.start, "by": "system", "what": "Started", "note": _started(job)})
    if job.end:
        entries.append({"at": job.end, "by": _ender(job), "what": str(job.get_state_display()), "note": _ended(job)})
    return entries[::-1]


def _started(job: Job) -> str:
    waited = duration(job.wait_s) if job.wait_s is not None and job.wait_s >= 0 else "–"
    return f"after {waited}{f', on {short_nodes(job.node_list)}' if job.node_list else ''}"


def _ender(job: Job) -> str:
    return (
        "human" if job.state == JobState.CANCELLED and job.cancelled_by_uid and job.actor == Actor.HUMAN else "system"
    )


def _ended(job: Job) -> str:
    words = describe_outcome(job.state, job.exit_code or 0, job.exit_signal or 0)
    if job.cancelled_by_uid is not None:
        words += f" by uid {job.cancelled_by_uid}"
    return f"{words} after {duration(job.elapsed_s)}" if job.start else f"{words} before it started"

"""What site automation sends: job records, sessions; and what became of them."""

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router

from portal.core.errors import NotFound
from portal.core.idempotency import idempotent
from portal.core.paging import cut_page
from portal.core.problems import answers
from principals.auth import actor_of, requires
from principals.models import AgentSession
from principals.services import DeclaredSession
from telemetry import services
from telemetry.models import IngestBatch
from telemetry.schemas import (
    BatchOut,
    QuarantinedOut,
    QuarantinePage,
    SessionIn,
    SessionResult,
    SessionsIn,
    SessionsOut,
)

router = Router()

_TEXT_BODY = {
    "requestBody": {
        "required": True,
        "content": {"text/plain": {"schema": {"type": "string", "minLength": 1}}},
    }
}


@router.post("/jobs", auth=requires("ingest:jobs"), response=answers(202, BatchOut), openapi_extra=_TEXT_BODY)
@idempotent
def ingest_jobs(request: HttpRequest, cluster: str, format: str = "sacct") -> tuple[int, BatchOut]:
    """Send accounting text (`sacct -P -D` with its header, or `xdmod`); answers with the batch that works on it."""
    batch = services.accept_upload(
        actor=actor_of(request), cluster_name=cluster, body=request.body, format=format, source="api"
    )
    return 202, show_batch(batch)


@router.get("/batches/{batch_id}", auth=requires("ingest:jobs"), response=answers(200, BatchOut))
def get_batch(request: HttpRequest, batch_id: UUID) -> BatchOut:
    """Say how far a batch is and what became of its records. A failed one says why in `error`."""
    return show_batch(_find_batch(request, batch_id))


@router.get("/batches/{batch_id}/quarantine", auth=requires("ingest:jobs"), response=answers(200, QuarantinePage))
def list_quarantine(
    request: HttpRequest,
    batch_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> QuarantinePage:
    """List the records of a batch that were set aside, with reason and (redacted) text."""
    kept = _find_batch(request, batch_id).quarantined.filter(pk__gt=after).order_by("pk")
    page, last = cut_page(kept, limit)
    items = [
        QuarantinedOut(id=row.pk, line=row.line, reason=row.reason, detail=row.detail, raw=row.raw) for row in page
    ]
    return QuarantinePage(items=items, next=last.pk if last else None)


@router.post("/sessions", auth=requires("ingest:sessions"), response=answers(200, SessionsOut))
@idempotent
def ingest_sessions(request: HttpRequest, body: SessionsIn) -> tuple[int, SessionsOut]:
    """Declare sessions; jobs submitted within them are attributed to them, whichever came first."""
    actor = actor_of(request)
    sessions = [read_session(each) for each in body.sessions]
    with services.feed_cluster(actor=actor, kind="sessions", name=body.cluster) as cluster:
        declared = services.declare_sessions(actor=actor, cluster=cluster, sessions=sessions)
    results = [
        SessionResult(
            outcome=each.outcome, agent=each.agent, reason=each.reason or each.unregistered, remedy=each.remedy
        )
        for each in declared.outcomes
    ]  # fmt: skip
    return 200, SessionsOut(results=results, jobs_changed=declared.jobs_changed)


def read_session(sent: SessionIn) -> DeclaredSession:
    """Return a declared session; without a kind, one with a harness is an agent's."""
    kind = sent.kind or (AgentSession.Kind.AGENT if sent.harness else AgentSession.Kind.INTERACTIVE)
    return DeclaredSession(
        login=sent.user, host=sent.host, kind=str(kind), harness=sent.harness or "", started=sent.start,
        ended=sent.end, campaign=sent.campaign,
    )  # fmt: skip


def show_batch(batch: IngestBatch) -> BatchOut:
    """Return a batch as the API shows it."""
    names = ("created_rows", "updated_rows", "duplicate_rows", "late_rows", "rejected_rows", "step_rows", "redactions")
    return BatchOut(
        id=batch.public_id, kind=batch.kind, cluster=batch.cluster.name, format=batch.format, source=batch.source,
        state=batch.state, error=batch.error, created=batch.created, started=batch.started, finished=batch.finished,
        bytes_total=batch.bytes_total, bytes_done=batch.offset, rows=batch.total_rows,
        reasons=services.count_reasons(batch) if batch.rejected_rows else {},
        **{name: getattr(batch, name) for name in names},
    )  # fmt: skip


def _find_batch(request: HttpRequest, batch_id: UUID) -> IngestBatch:
    visible = IngestBatch.objects.visible_to(actor_of(request)).select_related("cluster")
    batch = visible.filter(public_id=batch_id).first()
    if batch is None:
        raise NotFound("There is no such batch of yours.", code="batch_unknown", remedy="Use the id that a POST gave.")
    return batch

"""One batch: how far it is, what became of each of its records, and those that were refused."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from portal.core import clock, exports
from portal.dashboard.ingest.health import ROW_COLUMNS, quarantine_records
from principals import permissions
from principals.web import PageRequest, page
from telemetry import services
from telemetry.models import IngestBatch

PAGE_SIZE = 50
# Column, words, what it means.
OUTCOMES = (
    ("created_rows", "New", "Not known before."),
    ("updated_rows", "Updated", "Known, and it said something newer."),
    ("duplicate_rows", "Already known", "Sent before, word for word; nothing changed."),
    ("late_rows", "Overtaken", "Older than what is known; nothing changed."),
    ("step_rows", "Steps", "Lines of job steps, which are not kept."),
    ("rejected_rows", "Refused", "Set aside with a reason; see below."),
)


@page
def ingest_batch(request: PageRequest, public_id: str) -> HttpResponseBase:
    """Show one batch; while it runs, the page asks for its progress again every two seconds."""
    permissions.require(request.actor, "ingest.look", remedy="Research-computing staff and auditors see the ingest.")
    batch = _find(request, public_id)
    rows = batch.quarantined.select_related("batch").order_by("line", "pk")
    if reason := request.GET.get("reason"):
        rows = rows.filter(reason=reason)
    if wanted := request.GET.get("format"):
        return exports.stream(request, wanted, f"quarantine-{batch.public_id}", ROW_COLUMNS, quarantine_records(rows))
    context = {
        "batch": batch, "works": batch.state in (IngestBatch.State.QUEUED, IngestBatch.State.RUNNING),
        "outcomes": [(words, getattr(batch, name), note) for name, words, note in OUTCOMES],
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "reasons": services.count_reasons(batch) if batch.rejected_rows else {}, "reason": reason or "",
        "retry_rows": services.can_retry(batch) if permissions.can(request.actor, "ingest.retry") else 0,
        "took_s": ((batch.finished or clock.now()) - batch.started).total_seconds() if batch.started else None,
    }  # fmt: skip
    return render(request, "ingest/batch.html", context)


@require_POST
@page
def retry_ingest_batch(request: PageRequest, public_id: str) -> HttpResponseBase:
    """Send what a batch refused, or what is left of one that failed, on its way again."""
    permissions.require(request.actor, "ingest.retry", remedy="Research-computing staff do this.")
    batch = _find(request, public_id)
    again = services.retry_batch(actor=request.actor, batch=batch)
    words = "It goes on where it was." if again == batch else "What was refused is tried again, here."
    messages.success(request, words)
    return redirect(again)


def _find(request: PageRequest, public_id: str) -> IngestBatch:
    visible = IngestBatch.objects.visible_to(request.actor).select_related("cluster")
    return get_object_or_404(visible, public_id=public_id)

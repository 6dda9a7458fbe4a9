"""One batch: how far it is, what became of each of its records, and those that were refused."""

from django.core.paginator import Paginator
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from portal.core import clock, exports
from portal.dashboard.ingest.health import ROW_COLUMNS, quarantine_records
from principals import permissions
from principals.web import PageRequest, page
from telemetry import services
from telemetry.models import IngestBatch

PAGE_SIZE = 50
# Column, words, what it means.
OUTCOMES = (
    ("created_rows", "New", "Jobs that were not known before."),
    ("updated_rows", "Updated", "Known jobs of which it said something newer."),
    ("duplicate_rows", "Already known", "Sent before, word for word; nothing changed."),
    ("late_rows", "Overtaken", "Older than what is known of the job; nothing changed."),
    ("step_rows", "Steps", "Lines of job steps, which are not kept."),
    ("rejected_rows", "Refused", "Set aside with a reason; see below."),
)


@page
def ingest_batch(request: PageRequest, public_id: str) -> HttpResponseBase:
    """Show one batch; while it runs, the page asks for its progress again every two seconds."""
    permissions.require(request.actor, "ingest.look", remedy="Research-computing staff and auditors see the ingest.")
    visible = IngestBatch.objects.visible_to(request.actor).select_related("cluster")
    batch = get_object_or_404(visible, public_id=public_id)
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
        "took_s": ((batch.finished or clock.now()) - batch.started).total_seconds() if batch.started else None,
    }  # fmt: skip
    return render(request, "ingest/batch.html", context)

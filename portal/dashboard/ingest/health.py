"""Ingest health: how each source does, what batches brought, what was refused, and what stands behind it all."""

from datetime import UTC, timedelta
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from portal.core import clock, exports, live
from portal.core.models import LiveEvent
from portal.dashboard.audit.chain import chain_state
from portal.dashboard.formats import duration
from portal.dashboard.ingest.forms import ExpectForm
from principals import permissions
from principals.web import PageRequest, page
from telemetry import services as telemetry_services
from telemetry.models import IngestBatch, QuarantinedRow
from telemetry.selectors import hooks, scheduler, sources

BATCHES = 20
ROWS = 20
MOST_EXPORTED = 100_000
SOURCE_COLUMNS = ("cluster", "kind", "name", "state", "last_received", "age_s", "lag_s", "expected_every_s",
                  "records_an_hour", "gaps", "silent_s")  # fmt: skip
BATCH_COLUMNS = (
    "public_id", "kind", "cluster", "source", "name", "format", "sent_by", "state", "error", "created", "started",
    "finished", "created_rows", "updated_rows", "duplicate_rows", "late_rows", "rejected_rows", "step_rows",
    "redactions",
)  # fmt: skip
TELLER_COLUMNS = (
    "cluster",
    "name",
    "told",
    "lag_median_s",
    "lag_p99_s",
    "received",
    "repeats",
    "waiting",
    "unanswered",
)
ROW_COLUMNS = ("batch", "line", "reason", "detail", "raw", "at")


@page
def ingest_health(request: PageRequest) -> HttpResponseBase:
    """Show how telemetry comes in; `?format=` with `of=sources|tellers|batches|quarantine` exports that list."""
    actor = request.actor
    permissions.require(actor, "ingest.look", remedy="Research-computing staff and auditors see the ingest.")
    batches, state = _batches(request), _state(request)
    if state:
        batches = batches.filter(state=state)
    rows = sources.quarantined(actor)
    reasons = sources.reasons_of(rows)
    if reason := request.GET.get("reason"):
        rows = rows.filter(reason=reason)
    rows = rows.order_by("-pk")
    if wanted := request.GET.get("format"):
        return _export(request, wanted, batches, rows)
    return _show(request, batches, rows, reasons)


@require_POST
@page
def expect_source(request: PageRequest) -> HttpResponseBase:
    """Set how often a source is expected."""
    permissions.require(request.actor, "ingest.expect", remedy="Research-computing staff set this.")
    form = ExpectForm(request.POST)
    if not form.is_valid():
        rows = sources.quarantined(request.actor)
        return _show(request, _batches(request), rows.order_by("-pk"), sources.reasons_of(rows), form)
    every_s = form.cleaned_data["every_s"]
    source = telemetry_services.expect_source(actor=request.actor, source=form.cleaned_data["source"], every_s=every_s)
    words = f"is expected every {duration(every_s)}" if every_s else "comes when it comes"
    messages.success(request, f"{source.name} of {source.cluster.name} {words}.")
    return redirect("ingest-health")


def _state(request: PageRequest) -> str:
    asked = request.GET.get("batch_state", "")
    return asked if asked in IngestBatch.State.values else ""


def _batches(request: PageRequest) -> QuerySet[IngestBatch]:
    visible = IngestBatch.objects.visible_to(request.actor)
    return visible.select_related("cluster").order_by("-created", "-pk")


def _show(
    request: PageRequest, batches: QuerySet[IngestBatch], rows: QuerySet[QuarantinedRow],
    reasons: list[tuple[str, int]], form: ExpectForm | None = None,
) -> HttpResponseBase:  # fmt: skip
    actor = request.actor
    shown = Paginator(batches, BATCHES).get_page(request.GET.get("page"))
    if form is None and permissions.can(actor, "ingest.expect"):
        form = ExpectForm()
    context = {
        "sources": sources.sources(with_past=True), "readers": sources.readers(), "callers": _callers(),
        "shim_uses": _shim_uses(),
        "inventory": sources.inventory(), "tellers": hooks.tellers(), "missed": hooks.missed_ends(),
        "page": shown, "reasons": reasons,
        "reason": request.GET.get("reason", ""), "rows": rows[:ROWS], "rows_total": rows.count(),
        "now": clock.now(), "batch_state": _state(request), "expect_form": form,
        "batch_states": [("", "All"), *IngestBatch.State.choices], "intake": sources.intake(actor, _since()),
        **_behind(),
    }  # fmt: skip
    return render(request, "ingest/health.html", context, status=422 if form and form.errors else 200)


def _since() -> Any:
    return clock.now() - sources.RECENT


def _callers() -> list[scheduler.Caller]:
    """Return who asked the scheduler most, today and yesterday (UTC)."""
    today = clock.now().astimezone(UTC).date()
    return scheduler.busiest_callers(first=today - timedelta(days=1), last=today)


def _shim_uses() -> list[scheduler.ShimUses]:
    """Return what became of questions that agents asked the portal instead, today and yesterday (UTC)."""
    today = clock.now().astimezone(UTC).date()
    return scheduler.shim_uses(first=today - timedelta(days=1), last=today)


def _behind() -> dict[str, Any]:
    """Return what stands behind the pages: the chain, the live stream, the rollups."""
    return {
        "chain": chain_state(), "backlog": sources.rollup_backlog(), "seq": live.newest_seq(),
        "unnumbered": LiveEvent.objects.filter(seq=None).count(),
    }  # fmt: skip


def _export(
    request: PageRequest, kind: str, batches: QuerySet[IngestBatch], rows: QuerySet[QuarantinedRow]
) -> HttpResponseBase:
    wanted = request.GET.get("of", "batches")
    if wanted == "sources":
        records = ({name: getattr(one, name) for name in SOURCE_COLUMNS} for one in sources.sources(with_past=True))
        return exports.export(kind, "ingest-sources", SOURCE_COLUMNS, records)
    if wanted == "tellers":
        records = ({name: getattr(one, name) for name in TELLER_COLUMNS} for one in hooks.tellers())
        return exports.export(kind, "job-event-sources", TELLER_COLUMNS, records)
    if wanted == "quarantine":
        return exports.stream(request, kind, "quarantine", ROW_COLUMNS, quarantine_records(rows))
    records = (
        {name: getattr(one, name) for name in BATCH_COLUMNS} | {"cluster": one.cluster.name}
        for one in batches[:MOST_EXPORTED].iterator(chunk_size=1000)
    )
    return exports.stream(request, kind, "ingest-batches", BATCH_COLUMNS, records)


def quarantine_records(rows: QuerySet[QuarantinedRow]) -> Any:
    """Return quarantined rows as records of an export."""
    for row in rows[:MOST_EXPORTED].iterator(chunk_size=1000):
        yield {
            "batch": row.batch.public_id, "line": row.line, "reason": row.reason, "detail": row.detail,
            "raw": row.raw, "at": row.at,
        }  # fmt: skip

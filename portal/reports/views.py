"""The list of reports, one period's report, and what staff do with it."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import capfirst
from django.views.decorators.http import require_GET, require_POST

from portal.core import clock, leases
from portal.core.errors import Invalid, NotFound, TooMany
from portal.reports import brief, drafting, pages, services
from portal.reports.choosing import Chosen, choose
from portal.reports.models import OPEN, Drafting, Report
from principals import permissions
from principals.models import Cluster
from principals.web import PageRequest, page
from telemetry.selectors import Period

SHOWN = 200
PDF_S = 120
_ORDER = [Report.State.PUBLISHED, Report.State.APPROVED, Report.State.DRAFT, Report.State.SUPERSEDED]


def _versions(request: PageRequest, cluster: str, period: str) -> QuerySet[Report]:
    days = Period.parse(period)
    return (
        Report.objects.visible_to(request.actor)
        .filter(cluster__in=Cluster.objects.named(cluster), first=days.first, last=days.last)
        .select_related("cluster")
    )


@require_GET
@page
def report_list(request: PageRequest) -> HttpResponse:
    """List every version that this person may see, newest first; staff choose a period: `cluster`, `from`, `to`."""
    reports = Report.objects.visible_to(request.actor).select_related("cluster").defer("content")
    staff = permissions.can(request.actor, "facility.run")
    clusters = list(Cluster.objects.order_by("name")) if staff else []
    chosen = choose(request.GET, clusters, today=clock.now().date()) if clusters else Chosen()
    if chosen.period:
        days = {"first__lte": chosen.period.last, "last__gte": chosen.period.first}
        reports = reports.filter(cluster__name=chosen.cluster, **days)
    context = {
        "reports": reports[:SHOWN],
        "total": reports.count(),
        "clusters": clusters,
        "chosen": chosen,
        "found": _of_period(reports, chosen.period) if chosen.period else None,
        "drafting": Drafting.objects.select_related("cluster", "asked_by") if staff else [],
    }
    return render(request, "reports/list.html", context)


def _of_period(reports: QuerySet[Report], period: Period) -> Report | None:
    found = _preferred(list(reports.filter(first=period.first, last=period.last)))
    return found[0] if found else None


@require_GET
@page
def report(request: PageRequest, cluster: str, period: str) -> HttpResponse:
    """Show a period's report: the published version, else what is being made.

    `version` chooses another, `form=short` shows its short form, `format` exports the whole.
    """
    versions = list(_versions(request, cluster, period))
    wanted = request.GET.get("version", "")
    chosen = [one for one in versions if str(one.version) == wanted] if wanted else _preferred(versions)
    if not chosen:
        raise NotFound(f"There is no report of {period} for {cluster} that you may read.", remedy="See all reports.")
    found = chosen[0]
    if "format" in request.GET:
        return _export(found, request.GET["format"])
    content = services.with_draft_before(found)
    context = pages.context(content) | {
        "report": found,
        "versions": versions,
        "may_run": permissions.can(request.actor, "facility.run"),
        "is_behind": request.actor.sees_facility and services.is_behind(request.actor, found),
        "brief": brief.of(content) if request.GET.get("form") == "short" else None,
    }
    return render(request, "reports/report.html", context)


def _export(found: Report, kind: str) -> HttpResponse:
    services.require_intact(found)
    if kind != "pdf":
        return pages.respond(found.content, kind)
    with leases.held("report-pdf", seconds=PDF_S) as holder:  # seconds of a core each
        if not holder:
            raise TooMany("Another PDF is being drawn.", code="pdf_busy", retry_after_s=10, remedy="Try again soon.")
        return pages.respond(found.content, kind)


def _preferred(versions: list[Report]) -> list[Report]:
    return sorted(versions, key=lambda one: (_ORDER.index(Report.State(one.state)), -one.version))


@require_POST
@page
def draft(request: PageRequest) -> HttpResponse:
    """Draft a period, or bring its draft up to date: `period`, or the days `from` and `to`."""
    permissions.require(request.actor, "facility.run")
    cluster = get_object_or_404(Cluster.objects.named(request.POST.get("cluster", "")))
    if name := request.POST.get("period", ""):
        period = Period.parse(name)
    else:
        period = Period.between(request.POST.get("from", ""), request.POST.get("to", ""))
    asked = drafting.ask_for_draft(actor=request.actor, cluster=cluster, period=period)
    messages.success(request, f"A draft of {asked.period.title} is asked for.")
    return redirect("reports")


@require_POST
@page
def approve(request: PageRequest, cluster: str, period: str) -> HttpResponse:
    """Approve the draft that was read."""
    found = _open_one(request, cluster, period)
    services.approve(actor=request.actor, report=found, digest=request.POST.get("digest", ""))
    messages.success(request, f"Version {found.version} is approved. It can be published now.")
    return _back_to(found)


@require_POST
@page
def publish(request: PageRequest, cluster: str, period: str) -> HttpResponse:
    """Publish the approved version that was read."""
    found = _open_one(request, cluster, period)
    services.publish(actor=request.actor, report=found, digest=request.POST.get("digest", ""))
    said = f"{capfirst(found.period.title)} is published; version {found.version} does not change any more."
    messages.success(request, said)
    return _back_to(found)


@require_POST
@page
def withdraw(request: PageRequest, cluster: str, period: str) -> HttpResponse:
    """Withdraw the published version, with a reason."""
    permissions.require(request.actor, "facility.run")
    found = _versions(request, cluster, period).filter(state=Report.State.PUBLISHED).first()
    if found is None:
        raise NotFound(f"Nothing is published of {period} for {cluster}.", remedy="See all reports.")
    reason = request.POST.get("reason", "").strip()
    if not reason:
        raise Invalid("Say why.", code="reason_required", remedy="A sentence is enough.")
    services.supersede(actor=request.actor, report=found, reason=reason[:500])
    messages.success(request, f"Version {found.version} is withdrawn.")
    return _back_to(found)


def _open_one(request: PageRequest, cluster: str, period: str) -> Report:
    permissions.require(request.actor, "facility.run")
    found = _versions(request, cluster, period).filter(state__in=OPEN).first()
    if found is None:
        raise NotFound(f"There is no draft of {period} for {cluster}.", remedy="Draft it on Reports.")
    return found


def _back_to(found: Report) -> HttpResponseRedirect:
    return HttpResponseRedirect(f"{found.get_absolute_url()}?version={found.version}")

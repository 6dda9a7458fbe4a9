"""The list of reports, one month's report, and what staff do with it."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from portal.core import clock
from portal.core.errors import NotFound
from portal.reports import drafting, pages, services
from portal.reports.models import Drafting, Report
from principals import permissions
from principals.models import Cluster
from principals.web import PageRequest, page
from telemetry.models import DataGeneration
from telemetry.selectors import Period

SHOWN = 200


def _versions(request: PageRequest, cluster: str, month: str) -> QuerySet[Report]:
    period = Period.parse_month(month)
    return (
        Report.objects.visible_to(request.actor)
        .filter(cluster__in=Cluster.objects.named(cluster), month=period.first)
        .select_related("cluster")
    )


@require_GET
@page
def report_list(request: PageRequest) -> HttpResponse:
    """List every version that this person may see, newest month first."""
    reports = Report.objects.visible_to(request.actor).select_related("cluster").defer("content")
    last_month = Period.month(clock.now().year, clock.now().month).previous()
    staff = permissions.can(request.actor, "facility.run")
    context = {
        "reports": reports[:SHOWN],
        "total": reports.count(),
        "clusters": Cluster.objects.order_by("name") if staff else [],
        "month": f"{last_month.first:%Y-%m}",
        "drafting": Drafting.objects.select_related("cluster", "asked_by") if staff else [],
    }
    return render(request, "reports/list.html", context)


@require_GET
@page
def report(request: PageRequest, cluster: str, month: str) -> HttpResponse:
    """Show a month's report: the published version, else the draft; `version` chooses another, `format` exports it."""
    versions = list(_versions(request, cluster, month))
    wanted = request.GET.get("version", "")
    chosen = [one for one in versions if str(one.version) == wanted] if wanted else _preferred(versions)
    if not chosen:
        raise NotFound(f"There is no report of {month} for {cluster} that you may read.", remedy="See all reports.")
    found = chosen[0]
    if "format" in request.GET:
        return pages.respond(found.content, request.GET["format"])
    context = pages.context(found.content) | {
        "report": found,
        "versions": versions,
        "may_run": permissions.can(request.actor, "facility.run"),
        "is_behind": request.actor.sees_facility and DataGeneration.objects.of(found.cluster) != found.generation,
    }
    return render(request, "reports/monthly.html", context)


def _preferred(versions: list[Report]) -> list[Report]:
    order = [Report.State.PUBLISHED, Report.State.DRAFT, Report.State.SUPERSEDED]
    return sorted(versions, key=lambda one: (order.index(Report.State(one.state)), -one.version))


@require_POST
@page
def draft(request: PageRequest) -> HttpResponse:
    """Draft a month, or bring its draft up to date."""
    permissions.require(request.actor, "facility.run")
    cluster = get_object_or_404(Cluster.objects.named(request.POST.get("cluster", "")))
    period = Period.parse_month(request.POST.get("month", ""))
    asked = drafting.ask_for_draft(actor=request.actor, cluster=cluster, period=period)
    messages.success(request, f"A draft of {asked.month:%B %Y} is asked for.")
    return redirect("reports")


@require_POST
@page
def publish(request: PageRequest, cluster: str, month: str) -> HttpResponse:
    """Publish the draft that was read."""
    permissions.require(request.actor, "facility.run")
    found = _versions(request, cluster, month).filter(state=Report.State.DRAFT).first()
    if found is None:
        raise NotFound(f"There is no draft of {month} for {cluster}.", remedy="Draft it on Reports.")
    services.publish(actor=request.actor, report=found, digest=request.POST.get("digest", ""))
    messages.success(request, f"{found.month:%B %Y} is published; version {found.version} does not change any more.")
    return redirect(found.get_absolute_url())

"""Recording a lesson in the browser."""

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from memory import services as memory_services
from memory.forms import RecordForm
from memory.services import Recorded
from portal.core.errors import DomainError
from principals.models import Cluster, Lab
from principals.web import PageRequest, add_refusal, page

ERROR_SHOWN = 4000  # characters of an error handed over from the search


@require_http_methods(["GET", "HEAD", "POST"])
@page
def record(request: PageRequest) -> HttpResponseBase:
    """Show the form, or record what it says; `?q=` fills in the error that was searched for."""
    labs = list(Lab.objects.filter(pk__in=request.actor.member_lab_ids))
    clusters = list(Cluster.objects.order_by("name"))
    if request.method != "POST":
        start = {"error_text": request.GET.get("q", "")[:ERROR_SHOWN]}
        return _show(request, RecordForm(request.actor, labs, clusters, initial=start))
    form = RecordForm(request.actor, labs, clusters, request.POST)
    if not form.is_valid():
        return _show(request, form, status=422)
    try:
        recorded = memory_services.record_lesson(actor=request.actor, content=form.content(), **form.where())
    except DomainError as error:
        add_refusal(form, error)
        return _show(request, form, status=error.status)
    messages.success(request, _said(recorded))
    return redirect(recorded.lesson)


def _show(request: PageRequest, form: RecordForm, status: int = 200) -> HttpResponseBase:
    return render(request, "memory/record.html", {"form": form}, status=status)


def _said(recorded: Recorded) -> str:
    if not recorded.created:
        return "This lesson was known already. Your word for it is counted."
    return "The lesson is recorded, and waits for the lab’s PI." if recorded.proposal else "The lesson is recorded."

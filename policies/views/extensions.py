"""Pages of extensions: the queue, one release, deciding about it, submitting one."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from policies import permissions, selectors
from policies import services as policy_services
from policies.forms import DecideForm, SubmitForm
from policies.models import ExtensionRelease
from portal.core import clock, exports
from portal.core.errors import DomainError
from principals.web import PageRequest, add_refusal, page

PAGE_SIZE = 25
STATES = dict(ExtensionRelease.State.choices)
COLUMNS = (
    "identity", "kind", "version", "digest", "capabilities", "state", "conditions", "reason", "submitted_at",
    "decided_at", "source_url",
)  # fmt: skip


def _visible(request: PageRequest) -> QuerySet[ExtensionRelease]:
    return ExtensionRelease.objects.visible_to(request.actor).select_related(
        "extension", "submitted_by", "submitted_by_agent", "decided_by"
    )


@page
def extensions(request: PageRequest) -> HttpResponseBase:
    """Show the queue, or what `?state=` asks for, with its first release; `?format=` exports the list."""
    state = _state(request)
    if wanted := request.GET.get("format"):
        rows = map(_record, _listed(request, state))
        return exports.export(wanted, "extensions", COLUMNS, rows)
    listed = Paginator(_listed(request, state), PAGE_SIZE).get_page(request.GET.get("page"))
    first = next(iter(listed), None)
    return _show(request, state, listed, first)


@page
def extension(request: PageRequest, pk: int) -> HttpResponseBase:
    """Show one release beside the list of its state."""
    release = get_object_or_404(_visible(request), pk=pk)
    return _show_one(request, release)


def _show_one(
    request: PageRequest, release: ExtensionRelease, form: DecideForm | None = None, *, status: int = 200
) -> HttpResponseBase:
    listed = Paginator(_listed(request, release.state), PAGE_SIZE).get_page(request.GET.get("page"))
    return _show(request, release.state, listed, release, form, status=status)


def _state(request: PageRequest) -> str:
    if (state := request.GET.get("state")) in STATES:
        return str(state)
    reviews = permissions.can(request.actor, "extension.decide")
    return ExtensionRelease.State.QUEUED if reviews else ExtensionRelease.State.ADMITTED


def _listed(request: PageRequest, state: str) -> QuerySet[ExtensionRelease]:
    rows = _visible(request).filter(state=state)
    # The queue is worked from its oldest; what is decided is read from its newest.
    return rows.order_by("submitted_at", "pk") if state == "queued" else rows.order_by("-decided_at", "-pk")


def _show(
    request: PageRequest, state: str, listed: Any, release: ExtensionRelease | None, form: DecideForm | None = None,
    *, status: int = 200,
) -> HttpResponseBase:  # fmt: skip
    counts = dict(_visible(request).order_by().values_list("state").annotate(number=Count("pk")))
    context = {
        "state": state,
        "state_label": STATES[state],
        "states": [(value, label, counts.get(value, 0)) for value, label in STATES.items()],
        "page": listed,
        "release": release,
        "now": clock.now(),
        "may_decide": permissions.can(request.actor, "extension.decide"),
        "may_submit": permissions.can(request.actor, "extension.submit"),
    }
    if release is not None:
        context |= {
            "form": form or DecideForm(release=release),
            "comparison": selectors.compare_with_admitted(release),
            "is_own": release.submitted_by_id == request.user.pk,
            "earlier": _visible(request).filter(extension=release.extension).exclude(pk=release.pk)[:10],
        }
    return render(request, "policies/extensions.html", context, status=status)


def _record(release: ExtensionRelease) -> dict[str, Any]:
    fields = ("version", "digest", "state", "conditions", "reason", "submitted_at", "decided_at", "source_url")
    return {name: getattr(release, name) for name in fields} | {
        "identity": release.extension.identity,
        "kind": release.extension.kind,
        "capabilities": " ".join(release.capabilities),
    }


@require_POST
@page
def decide_extension(request: PageRequest, pk: int) -> HttpResponseBase:
    """Decide about a queued release, or revoke an admitted one."""
    release = get_object_or_404(_visible(request), pk=pk)
    form = DecideForm(request.POST, release=release)
    decision = request.POST.get("decision", "")
    if not form.is_valid():
        return _show_one(request, release, form, status=422)
    try:
        if decision == ExtensionRelease.State.REVOKED and release.state != ExtensionRelease.State.QUEUED:
            reason = form.cleaned_data["reason"]
            policy_services.revoke_extension(actor=request.actor, release=release, reason=reason)
        else:
            policy_services.decide_extension(
                actor=request.actor, release=release, decision=decision, reason=form.cleaned_data["reason"],
                conditions=form.cleaned_data.get("conditions", ""),
            )  # fmt: skip
    except DomainError as error:
        if error.status == 403:
            raise
        add_refusal(form, error)
        return _show_one(request, get_object_or_404(_visible(request), pk=pk), form, status=error.status)
    messages.success(request, f"{release} is {release.get_state_display().lower()}.")
    return redirect(release)


@page
def submit_extension(request: PageRequest) -> HttpResponseBase:
    """Submit a release for review."""
    permissions.require(request.actor, "extension.submit")
    form = SubmitForm(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                submission = policy_services.Submission(**form.cleaned_data)
                release = policy_services.submit_extension(actor=request.actor, submission=submission)
            except DomainError as error:
                add_refusal(form, error)
                status = error.status
            else:
                messages.success(request, f"{release} waits for review.")
                return redirect(release)
    return render(request, "policies/extension_submit.html", {"form": form}, status=status)

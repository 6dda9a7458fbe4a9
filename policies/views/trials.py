"""Pages of trials: budgets, requests with their reasons, limits."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from policies import permissions, selectors
from policies import services as policy_services
from policies.forms import TrialLimitsForm
from policies.models import TrialGrant, TrialPolicy, TrialRefusal
from policies.schemas import trial_fields
from policies.selectors import trial_period
from portal.core import clock, exports
from portal.core.errors import DomainError, Invalid, NotFound
from principals.models import Cluster, Lab
from principals.web import PageRequest, add_refusal, page
from telemetry.selectors import Period

PAGE_SIZE = 25
LATEST = 6
BY = [("lab", "Labs"), ("person", "People")]
BUDGET_COLUMNS = (
    "lab", "person", "people", "trials", "trials_allowed", "gpu_minutes", "gpu_minutes_allowed", "refused",
    "top_reason", "start_after_s",
)  # fmt: skip
GRANT_COLUMNS = (
    "id", "granted_at", "state", "agent", "person", "lab", "cluster", "account", "minutes", "gpus", "nodes",
    "gpu_minutes", "partition", "qos", "valid_until", "returns_at", "job", "purpose",
)  # fmt: skip
REFUSAL_COLUMNS = (
    "at",
    "agent",
    "person",
    "lab",
    "cluster",
    "minutes",
    "gpus",
    "nodes",
    "codes",
    "reasons",
    "returns_at",
    "purpose",
)
_IN_PERIOD = {"started": trial_period.started_in, "ended": trial_period.ended_in}


@page
def trials(request: PageRequest) -> HttpResponseBase:
    """Show budgets of the last day by lab or person, and the latest requests; `?format=` exports the budgets."""
    actor = request.actor
    # A member sees no whole lab; their own budget is what they came for.
    sees_labs = actor.sees_facility or bool(actor.visible_lab_ids)
    by = request.GET.get("by") if sees_labs and request.GET.get("by") in dict(BY) else "lab" if sees_labs else "person"
    rows = selectors.budget_rows(actor, by=by or "person", lab=_text(request, "lab"))
    if wanted := request.GET.get("format"):
        records = ({name: getattr(row, name) for name in BUDGET_COLUMNS} for row in rows)
        return exports.export(wanted, "trial-budgets", BUDGET_COLUMNS, records)
    grants, refusals = _grants(request), _refusals(request)
    day, policy = selectors.trial_day(actor), selectors.policy_for(None)
    context = {
        "policy": policy,
        "person_gpu_hours": policy.person_gpu_minutes / 60,
        "may_edit": permissions.can(actor, "trial.set_limits"),
        "day": day,
        "reasons": [(code, selectors.REASON_WORDS.get(code, code), number) for code, number in day.reasons[:3]],
        "by": by,
        "by_options": BY if sees_labs else [],
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "own": _own_budgets(request),
        "grants": selectors.mark_withdrawn(grants[:LATEST]),
        "grant_count": grants.count(),
        "refusals": refusals[:LATEST],
        "refusal_count": refusals.count(),
        "now": clock.now(),
    }
    return render(request, "policies/trials.html", context)


def _text(request: PageRequest, name: str) -> str:
    """Return a parameter as a database takes it."""
    return request.GET.get(name, "").replace("\x00", "")


def _own_budgets(request: PageRequest) -> list[selectors.Budget]:
    labs = Lab.objects.filter(pk__in=request.actor.member_lab_ids).order_by("title")[:4]
    return [selectors.trial_budget(request.user, lab) for lab in labs]


def _grants(request: PageRequest) -> QuerySet[TrialGrant]:
    return TrialGrant.objects.visible_to(request.actor).select_related("agent", "user", "lab", "cluster", "job")


def _refusals(request: PageRequest) -> QuerySet[TrialRefusal]:
    return TrialRefusal.objects.visible_to(request.actor).select_related("agent", "user", "lab", "cluster")


@page
def trial_requests(request: PageRequest) -> HttpResponseBase:
    """List trials granted, or requests refused (`?outcome=refused`); `?format=` exports what the filters give."""
    query = request.GET
    refused = query.get("outcome") == "refused"
    found: QuerySet[Any] = _filtered_refusals(request) if refused else _filtered_grants(request)
    if wanted := query.get("format"):
        columns, record = (REFUSAL_COLUMNS, _refusal_record) if refused else (GRANT_COLUMNS, _grant_record)
        return exports.export(wanted, "trials-refused" if refused else "trials", columns, map(record, found))
    listed = Paginator(found, PAGE_SIZE).get_page(query.get("page"))
    if not refused:
        selectors.mark_withdrawn(listed)
    for trial in [] if refused else listed:
        trial.may_cancel = trial.state == "granted" and permissions.can(request.actor, "trial.cancel", trial)
    context = {
        "refused": refused,
        "page": listed,
        "outcomes": [("granted", "Granted"), ("refused", "Refused")],
        "outcome": "refused" if refused else "granted",
        "states": [("", "All"), *TrialGrant.State.choices],
        "codes": [("", "All"), *selectors.REASON_WORDS.items()],
        "labs": [("", "All"), *Lab.objects.visible_to(request.actor).order_by("title").values_list("name", "title")],
        "periods": [("", "All"), ("day", "Last 24 hours")],
        "clusters": [("", "All"), *Cluster.objects.order_by("name").values_list("name", "name")],
        "jobs_in": _jobs_in(query),
        **_in_force(query),
        "now": clock.now(),
    }
    return render(request, "policies/trial_requests.html", context)


def _in_force(query: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of the address that are in force: unknown words are left out."""
    known = {"state": TrialGrant.State.values, "code": selectors.REASON_WORDS, "since": ("day",)}
    return {name: query.get(name, "") if query.get(name) in values else "" for name, values in known.items()}


def _filtered_grants(request: PageRequest) -> QuerySet[TrialGrant]:
    rows, query = _grants(request), request.GET
    if (state := query.get("state")) in TrialGrant.State.values:
        rows = rows.filter(state=state)
    if query.get("since") == "day":
        rows = rows.filter(granted_at__gt=clock.now() - selectors.WINDOW)
        # The day's figure leaves given back ones out; so do its rows.
        rows = rows if state in TrialGrant.State.values else rows.exclude(state=TrialGrant.State.CANCELLED)
    for what, period in _periods(query).items():
        rows = rows.filter(_IN_PERIOD[what](period))
    return _of_whom(rows, request)


def _periods(query: Mapping[str, str]) -> dict[str, Period]:
    """Return the periods of the address, as a report names them, in which trials' jobs `started` or `ended`."""
    found = {}
    for what in _IN_PERIOD:
        with suppress(Invalid):
            found[what] = Period.parse(query.get(what, ""))
    return found


def _jobs_in(query: Mapping[str, str]) -> str:
    """Say which trials the address asks for by their jobs; "" where it does not."""
    return " and ".join(f"{what} in {period.title}" for what, period in _periods(query).items())


def _filtered_refusals(request: PageRequest) -> QuerySet[TrialRefusal]:
    rows, query = _refusals(request), request.GET
    if (code := query.get("code")) in selectors.REASON_WORDS:
        rows = rows.filter(code=code)
    if query.get("since") == "day":
        rows = rows.filter(at__gt=clock.now() - selectors.WINDOW)
    return _of_whom(rows, request)


def _of_whom(rows: QuerySet[Any], request: PageRequest) -> QuerySet[Any]:
    for parameter, field in (
        ("lab", "lab__name"),
        ("cluster", "cluster__name"),
        ("person", "user__username"),
        ("agent", "agent__name"),
    ):
        if wanted := _text(request, parameter):
            rows = rows.filter(**{field: wanted})
    return rows


def _grant_record(trial: TrialGrant) -> dict[str, Any]:
    return trial_fields(trial) | {"person": trial.user.username}


def _refusal_record(row: TrialRefusal) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("at", "minutes", "gpus", "nodes", "returns_at", "purpose")} | {
        "agent": row.agent.name if row.agent else None,
        "person": row.user.username,
        "lab": row.lab.name,
        "cluster": row.cluster.name,
        "codes": ", ".join(reason["code"] for reason in row.reasons),
        "reasons": " ".join(reason["sentence"] for reason in row.reasons),
    }


@require_POST
@page
def cancel_trial(request: PageRequest, trial: str) -> HttpResponseBase:
    """Give back a trial that has no job."""
    found = get_object_or_404(_grants(request), public_id=trial)
    policy_services.cancel_trial(actor=request.actor, trial=found, reason=request.POST.get("reason", "")[:300])
    messages.success(request, f"{found.public_id} is cancelled; what it was charged is back.")
    return redirect("trial-requests")


@page
def trial_limits(request: PageRequest) -> HttpResponseBase:
    """Show and set the limits of trials: the facility's, or with `?lab=` a lab's own."""
    permissions.require(request.actor, "trial.set_limits", remedy="Staff set the limits of trials.")
    lab = _chosen_lab(request)
    own = TrialPolicy.objects.filter(lab=lab).first()
    if request.method == "POST" and "drop" in request.POST and lab is not None:
        policy_services.drop_trial_limits(actor=request.actor, lab=lab)
        messages.success(request, f"The facility’s limits hold for {lab.title} again.")
        return redirect("trial-limits")
    current = own or TrialPolicy(lab=lab, **_values(selectors.policy_for(lab)))
    form = TrialLimitsForm(request.POST if request.method == "POST" else None, instance=current)
    if request.method == "POST" and form.is_valid() and _save(request, lab, form):
        messages.success(request, "The limits hold from the next request on.")
        return redirect(f"{reverse('trial-limits')}?lab={lab.name}" if lab else reverse("trial-limits"))
    context = {
        "form": form,
        "form_title": f"Limits of {lab.title}" if lab else "Limits of the facility",
        "form_meta": "" if own or not lab else "the facility’s, as long as it has none of its own",
        "lab": lab,
        "own": own,
        "labs": [("", "The facility"), *Lab.objects.order_by("title").values_list("name", "title")],
        "exceptions": TrialPolicy.objects.exclude(lab=None).select_related("lab").order_by("lab__title")[:100],
        "now": clock.now(),
    }
    return render(request, "policies/trial_limits.html", context, status=422 if form.errors else 200)


def _chosen_lab(request: PageRequest) -> Lab | None:
    wanted = _text(request, "lab")
    lab = Lab.objects.filter(name=wanted).first() if wanted else None
    if wanted and lab is None:
        raise NotFound("There is no such lab.", code="lab_not_found")
    return lab


def _values(policy: TrialPolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in TrialLimitsForm.Meta.fields}


def _save(request: PageRequest, lab: Lab | None, form: TrialLimitsForm) -> bool:
    try:
        policy_services.set_trial_limits(actor=request.actor, lab=lab, limits=form.cleaned_data)
    except DomainError as error:
        add_refusal(form, error)
        return False
    return True

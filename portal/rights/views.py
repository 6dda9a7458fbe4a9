"""What is held about a person, who opened it, what they can appeal; and the appeals that wait for an answer."""

from typing import Final

from django.conf import settings
from django.contrib import messages
from django.core.handlers.asgi import ASGIRequest
from django.core.paginator import Paginator
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from portal.core import exports
from portal.core.errors import Invalid, NotFound
from portal.rights import services
from portal.rights.inventory import BY_SLUG
from principals import permissions, selectors
from principals import services as principal_services
from principals.models import AgentSession, Appeal, DataAccess, Hold
from principals.services.notices.telling import subjects_in_words
from principals.web import PageRequest, open_to_held, page

SHOWN: Final = 20
PAGE_SIZE: Final = 25
_OF_THE_POLICY: Final = (Hold.Kind.AUP, Hold.Subject.AGENT)  # lifted by a yes on the agent's page


@page
def held(request: PageRequest) -> HttpResponseBase:
    """Show what is held about the person who looks, and no other."""
    person = request.user
    found = services.held_about(person)
    holds = list(selectors.holds_concerning(person).order_by("-pk")[:SHOWN])
    words = subjects_in_words(holds)
    waiting = list(Appeal.objects.waiting().filter(person=person))
    appealed = {appeal.hold_id: appeal for appeal in waiting}
    sessions = AgentSession.objects.filter(cluster_user__user=person, kind=AgentSession.Kind.AGENT)
    context = {
        "held": [one for one in found if one.count], "empty": [one.holding for one in found if not one.count],
        "total": sum(one.count for one in found),
        "holds": [
            {"hold": hold, "what": words[hold.pk], "appeal": appealed.get(hold.pk),
             "accept_at": f"/agents/{words[hold.pk]}/" if (hold.kind, hold.subject_kind) == _OF_THE_POLICY else ""}
            for hold in holds
        ],
        "appealed": {appeal.session_id for appeal in waiting},
        "sessions": sessions.select_related("agent", "cluster").order_by("-started")[:SHOWN],
        "appeals": Appeal.objects.filter(person=person).order_by("-filed")[:SHOWN],
        "opened": DataAccess.objects.filter(person=person)[:SHOWN],
        "days": settings.APPEAL_DAYS,
    }  # fmt: skip
    return render(request, "rights/held.html", context)


@never_cache
@page
def download(request: PageRequest) -> HttpResponseBase:
    """Give the person all that is held about them as JSON; `table` gives one table."""
    table = request.GET.get("table", "")
    if table and table not in BY_SLUG:
        raise NotFound("There is no such table.", remedy="Go back to the page, and take one that it lists.")
    pieces = exports.pieces(services.export(request.user, table=table))
    content = exports.threaded(pieces) if isinstance(request, ASGIRequest) else pieces
    name = f"held-about-{request.user.pk}{f'-{table}' if table else ''}.json"
    headers = {"Content-Type": "application/json", "Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(content, headers=headers)


@require_POST
@page
@open_to_held
def appeal(request: PageRequest) -> HttpResponseBase:
    """Appeal a hold (`hold`) or the label of a session (`session`), with a `reason`."""
    reason = request.POST.get("reason", "")
    kind = "hold" if "hold" in request.POST else "session"
    which = request.POST.get(kind, "")
    if not (which.isdecimal() and len(which) < 19):
        raise Invalid("Say what you appeal.", code="appeal_of_nothing", remedy="Use the form on the page.")
    if kind == "hold":
        hold = get_object_or_404(selectors.holds_concerning(request.user), pk=int(which))
        filed = principal_services.file_hold_appeal(actor=request.actor, hold=hold, reason=reason)
    else:
        session = get_object_or_404(AgentSession.objects.visible_to(request.actor), pk=int(which))
        filed = principal_services.file_label_appeal(actor=request.actor, session=session, reason=reason)
    messages.success(
        request, f"It is filed. An answer is due within {settings.APPEAL_DAYS} days, by {filed.due:%Y-%m-%d}."
    )
    return redirect("held-about-me")


@page
def appeals(request: PageRequest) -> HttpResponseBase:
    """List appeals: those that wait first, the most urgent on top."""
    permissions.require(request.actor, "facility.look")
    every = Appeal.objects.visible_to(request.actor).select_related("person", "hold", "answered_by")
    answered = every.exclude(state=Appeal.State.OPEN).order_by("-answered")
    waiting = list(every.waiting()[:100])
    ended_elsewhere = {Hold.Kind.KILL_SWITCH, Hold.Kind.AUP}  # with the switch, by an acceptance
    context = {
        "waiting": waiting,
        "ended_elsewhere": {
            one.hold_id for one in waiting if one.hold and one.hold.is_in_force and one.hold.kind in ended_elsewhere
        },
        "page": Paginator(answered, PAGE_SIZE).get_page(request.GET.get("page")),
        "may_answer": permissions.can(request.actor, "appeal.answer"), "days": settings.APPEAL_DAYS,
        "kill_switch": Hold.Kind.KILL_SWITCH,
    }  # fmt: skip
    return render(request, "rights/appeals.html", context)


@require_POST
@page
def answer(request: PageRequest, appeal: int) -> HttpResponseBase:
    """Grant or refuse an appeal: `decision`, with an `answer`."""
    permissions.require(request.actor, "appeal.answer")
    found = get_object_or_404(Appeal.objects.visible_to(request.actor), pk=appeal)
    decision = request.POST.get("decision", "")
    if decision not in ("grant", "refuse"):
        raise Invalid("Say whether it is granted.", code="decision_missing", remedy="Use a button on the page.")
    principal_services.answer_appeal(
        actor=request.actor, appeal=found, granted=decision == "grant", answer=request.POST.get("answer", "")
    )
    messages.success(request, f"{found.person.username} is told.")
    return redirect("appeals")

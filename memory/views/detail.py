"""One lesson: what it says, what speaks for it, and what its reader may do. The posted field `act` says which."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from memory import permissions, selectors
from memory import services as memory_services
from memory.forms import ReasonForm, ReviewForm
from memory.models import Lesson
from memory.models.choices import Scope, Status
from memory.services.rows import condition_texts
from portal.core.errors import DomainError, Invalid
from principals.models import Cluster, Lab
from principals.web import PageRequest, add_refusal, page

EVIDENCE_SHOWN = 50


@require_http_methods(["GET", "HEAD", "POST"])
@page
def lesson(request: PageRequest, public_id: str) -> HttpResponseBase:
    """Show a lesson; a POST does one act and goes to what became of it, or says why it could not."""
    shown = selectors.find_lesson(request.actor, public_id)
    if request.method != "POST":
        return _show(request, shown)
    doer = _DOERS.get(request.POST.get("act", ""))
    if doer is None:
        raise Invalid("The form asks for something unknown.", code="act_unknown", remedy="Reload the page.")
    try:
        become, said = doer(request, shown)
    except DomainError as error:
        return _show(request, selectors.find_lesson(request.actor, public_id), refusal=error)
    messages.success(request, said)
    return redirect(become)


def _propose(request: PageRequest, shown: Lesson) -> tuple[Lesson, str]:
    place: dict[str, Any] = {}
    if shown.scope == Scope.LAB:
        place["cluster"] = Cluster.objects.named(request.POST.get("cluster", "")).first()
    else:
        member = Lab.objects.filter(pk__in=request.actor.member_lab_ids)
        place["lab"] = member.filter(name=request.POST.get("lab", "")[:64]).first()
    become = memory_services.propose_lesson(actor=request.actor, lesson=shown, **place)
    waits = become.status == Status.DRAFT
    return (
        become,
        f"It waits for approval by {_deciders(become)}." if waits else f"It is a lesson of {become.place} now.",
    )


def _approve(request: PageRequest, shown: Lesson) -> tuple[Lesson, str]:
    said = {name: request.POST.get(name) for name in ("cause", "fix", "check_words")}
    become = memory_services.approve_lesson(actor=request.actor, lesson=shown, **said)
    return become, f"It is a lesson of {become.place} now."


def _reject(request: PageRequest, shown: Lesson) -> tuple[Lesson, str]:
    reason = request.POST.get("reason", "")
    return memory_services.reject_lesson(
        actor=request.actor, lesson=shown, reason=reason
    ), "The proposal is turned down."


def _withdraw(request: PageRequest, shown: Lesson) -> tuple[Lesson, str]:
    reason = request.POST.get("reason", "")
    become = memory_services.withdraw_lesson(actor=request.actor, lesson=shown, reason=reason)
    return become, "The lesson is withdrawn; no look-up finds it."


def _word(holds: bool, said: str) -> "Callable[[PageRequest, Lesson], tuple[Lesson, str]]":
    def act(request: PageRequest, shown: Lesson) -> tuple[Lesson, str]:
        job_key = request.POST.get("job_key", "")
        memory_services.confirm_lesson(actor=request.actor, lesson=shown, holds=holds, job_key=job_key)
        return shown, said

    return act


_DOERS: dict[str, Callable[[PageRequest, Lesson], tuple[Lesson, str]]] = {
    "propose": _propose, "approve": _approve, "reject": _reject, "withdraw": _withdraw,
    "confirm": _word(True, "Your word for it is counted."), "refute": _word(False, "Your word against it is counted."),
}  # fmt: skip


def _deciders(proposal: Lesson) -> str:
    return "the PI or a lab manager" if proposal.scope == Scope.LAB else "research-computing staff"


def _show(request: PageRequest, shown: Lesson, refusal: DomainError | None = None) -> HttpResponse:
    names = permissions.can(request.actor, "lesson.see_names", shown)
    context = {
        "lesson": shown,
        "refusal": refusal,
        "names": names,
        "conditions": condition_texts(shown.conditions),
        "evidence": shown.evidence.order_by("-at", "-pk")[:EVIDENCE_SHOWN] if names else [],
        "deciders": _deciders(shown),
        "origin": _readable_origin(request, shown),
        **_acts(request, shown, refusal),
    }
    return render(request, "memory/lesson.html", context, status=refusal.status if refusal else 200)


def _readable_origin(request: PageRequest, shown: Lesson) -> Lesson | None:
    """Return the lesson this one was made from, for those who may read that too."""
    origin = shown.derived_from
    return Lesson.objects.visible_to(request.actor).filter(pk=origin.pk).first() if origin else None


def _acts(request: PageRequest, shown: Lesson, refusal: DomainError | None) -> dict[str, Any]:
    """Return what this reader may do, each with its form."""
    actor, active, waits = request.actor, shown.status == Status.ACTIVE, shown.status == Status.DRAFT
    wider = "lesson.propose_to_lab" if shown.scope == Scope.PROJECT else "lesson.propose_to_cluster"
    decides = waits and permissions.can(actor, "lesson.decide", shown)
    own = shown.evidence.filter(voice=f"user:{request.user.pk}", polarity="origin").exists()
    texts = {name: getattr(shown, name) for name in ("cause", "fix", "check_words")}
    return {
        "can_decide": decides,
        "can_propose": active and permissions.can(actor, wider, shown),
        "can_withdraw": active and permissions.can(actor, "lesson.withdraw", shown),
        "can_confirm": active and not own,
        "labs": Lab.objects.filter(pk__in=actor.member_lab_ids) if shown.lab_id is None else [shown.lab],
        "clusters": Cluster.objects.order_by("name") if shown.scope == Scope.LAB else [],
        "review": _form(request, "approve", ReviewForm, refusal, texts),
        "rejection": _form(request, "reject", ReasonForm, refusal, {}),
        "withdrawal": _form(request, "withdraw", ReasonForm, refusal, {}),
    }


def _form(
    request: PageRequest, act: str, kind: type[Form], refusal: DomainError | None, initial: dict[str, str]
) -> Form:
    """Return the form of an act; the refused one keeps what was typed and says why."""
    if refusal is None or request.POST.get("act") != act:
        return kind(auto_id=f"id_{act}_%s", initial=initial)
    form = kind(request.POST, auto_id=f"id_{act}_%s")
    if form.is_valid():
        add_refusal(form, refusal)
    return form

"""Notices: what a person was told, and how they want to be told it."""

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from principals.engine.notices import KINDS, Kind
from principals.models import Notice, NoticePreference
from principals.services.notices import writing as notice_services
from principals.web import PageRequest, page

PAGE_SIZE: Final = 50
MOST_COUNTED: Final = 99
OFFICE_KINDS: Final = frozenset({"appeal_filed"})  # of no use to who answers no appeals


@page
def notices(request: PageRequest) -> HttpResponseBase:
    """List what the person was told, newest first."""
    own = Notice.objects.visible_to(request.actor)
    shown = Paginator(own, PAGE_SIZE).get_page(request.GET.get("page"))
    unread = own.unread()
    context = {
        "page": shown, "notices": list(shown.object_list), "unread": unread.count(),
        "newest": own.values_list("pk", flat=True).order_by("-pk").first() or 0,
        "kept_days": notice_services.KEPT.days, "mail": settings.MAIL.is_on,
    }  # fmt: skip
    return render(request, "notices/notices.html", context)


@never_cache
@page
def count_unread(request: PageRequest) -> HttpResponseBase:
    """Answer how many the person did not look at, for the frame, which asks once a page is drawn."""
    unread = Notice.objects.visible_to(request.actor).unread()[: MOST_COUNTED + 1].count()
    return render(request, "notices/count.html", {"unread": unread, "most": MOST_COUNTED})


@require_POST
@page
def read(request: PageRequest) -> HttpResponseBase:
    """Mark all that stood on the page, and all before it, as read: `upto`."""
    upto = request.POST.get("upto", "")
    notice_services.mark_read(actor=request.actor, upto=int(upto) if upto.isdecimal() and len(upto) < 19 else 0)
    return redirect("notices")


@dataclass(frozen=True, slots=True)
class Choice:
    """One kind, as the person chose it or as it is."""

    kind: Kind
    mailed: str
    to_webhooks: bool


@page
def choose(request: PageRequest) -> HttpResponseBase:
    """Choose how each kind is told."""
    offered = [kind for kind in KINDS.values() if request.actor.sees_facility or kind.name not in OFFICE_KINDS]
    if request.method == "POST":
        sent = {kind.name: request.POST.get(f"mailed-{kind.name}", "") for kind in offered}
        chosen = {name: (how, f"webhooks-{name}" in request.POST) for name, how in sent.items()}
        notice_services.choose(actor=request.actor, choices=chosen)
        messages.success(request, "It is kept: what comes from now on is told so.")
        return redirect("notices-choose")
    own = {row.kind: row for row in NoticePreference.objects.filter(person=request.user)}
    rows = [_choice(kind, own.get(kind.name)) for kind in offered]
    context = {
        "rows": rows, "ways": NoticePreference.Mailed.choices, "mail": settings.MAIL.is_on,
        "per_hour": settings.MAIL.per_hour, "email": request.user.email,
    }  # fmt: skip
    return render(request, "notices/choose.html", context)


def _choice(kind: Kind, row: NoticePreference | None) -> Choice:
    if row is None:
        return Choice(kind, kind.mailed.value, kind.to_webhooks)
    return Choice(kind, row.mailed, row.to_webhooks)

"""Error pages keep the frame and say what to do; when the frame itself fails, the bare page answers."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from structlog.contextvars import get_contextvars

from portal.core import disk

_FAULT: dict[str, Any] = {"title": "Something broke here", "what": "The fault is ours.", "kind": "critical"}
_NO_ROOM: dict[str, Any] = {
    "title": "No room left", "what": "The portal’s disk is full, so this could not be done.", "kind": "critical",
}  # fmt: skip


def page(
    request: HttpRequest, status: int, title: str, what: str, *, kind: str = "caution", remedy: str = ""
) -> HttpResponse:
    """Return an error page in the frame; `what` is one sentence, `remedy` replaces the page's own advice."""
    signed_in = getattr(getattr(request, "user", None), "is_authenticated", False)
    context = {
        "status": status,
        "title": title,
        "what": what,
        "kind": kind,
        "remedy": remedy,
        "request_id": get_contextvars().get("request_id", ""),
        "frame": "base.html" if signed_in else "base_bare.html",
    }
    return render(request, f"errors/{status}.html", context, status=status)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 403 with the reason the code gave, where it gave one."""
    return page(request, 403, "Not open to you", "This page is not open to your account.", remedy=str(exception or ""))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 404."""
    return page(request, 404, "Nothing here", "No page has this address.")


def failed(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 507 where a full disk is why; a frame that cannot be drawn gives way to the bare page."""
    status, words = 500, _FAULT
    if disk.is_full(sys.exc_info()[1]):  # Django calls this while it handles what was raised
        status, words = disk.STATUS, _NO_ROOM
    try:
        return page(request, status, **words)
    except Exception:  # noqa: BLE001  whatever broke the page may break its frame too
        context = {**words, "status": status, "frame": "base_bare.html", "facility": settings.FACILITY_NAME}
        return HttpResponse(render_to_string(f"errors/{status}.html", context), status=status)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form whose token is missing or old."""
    remedy = "Go back, reload the page and send the form again. Nothing was changed."
    return page(request, 403, "This form is too old", "Its one-time token did not match.", remedy=remedy)

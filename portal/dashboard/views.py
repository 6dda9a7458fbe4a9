"""The frame's own view: the choice of theme."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from portal.dashboard.shell import THEMES

YEAR_S = 365 * 24 * 3600


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Keep the choice in a cookie and go back to the page it was made on."""
    theme = request.POST.get("theme", "")
    if theme not in THEMES:
        return HttpResponseBadRequest("theme is system, light or dark")
    back = request.headers.get("Referer", "/")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        back = "/"
    response = HttpResponseRedirect(back)
    # Not HttpOnly: portal.js sets the same cookie without a reload. It holds no secret.
    response.set_cookie("theme", theme, max_age=YEAR_S, samesite="Lax", secure=request.is_secure())
    return response

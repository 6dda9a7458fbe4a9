"""What every page of the browser shares: who is signed in, and refusals as pages or as errors of a form."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from django.contrib.auth.views import redirect_to_login
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRedirect
from structlog.contextvars import get_contextvars

from portal.core.errors import DomainError, Invalid, NotAllowed, NotFound, Unauthenticated
from principals.actors import Actor
from principals.models import Hold, User
from principals.permissions import actor_for_user

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class PageRequest(HttpRequest):
    """A request that `page` let in: `user` is a person, `actor` is what services and `visible_to` take."""

    user: User
    actor: Actor


def page(
    view: Callable[Concatenate[PageRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Require sign-in, set `request.actor`, and turn a `DomainError` into the error page of its status."""

    @wraps(view)
    def opened(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        known = cast(PageRequest, request)
        known.actor = actor_for_user(known.user)
        try:
            if known.method not in _READING:
                _require_more_than_reading(known, may_be_held=getattr(view, "open_to_held", False))
            _without_zeros(known, *args, *kwargs.values())
            return view(known, *args, **kwargs)
        except Unauthenticated:
            return _to_sign_in(request)
        except DomainError as error:
            return refused(request, error)

    return opened


def open_to_held(view: F) -> F:
    """Let people who are held do this, too: what they need to be heard. Stands below `page`."""
    view.open_to_held = True  # type: ignore[attr-defined]
    return view


def _require_more_than_reading(request: PageRequest, *, may_be_held: bool) -> None:
    """Refuse whatever changes something to auditors, whatever other roles they have, and to people who are held.

    Somebody who is held still signs in and reads: so they learn why, and what would lift the hold.
    """
    if request.actor.is_auditor:
        raise NotAllowed(
            "An auditor reads everything and changes nothing.", code="auditor_reads",
            remedy="Ask somebody who is no auditor to do it.",
        )  # fmt: skip
    if may_be_held:
        return
    hold = Hold.objects.in_force().on(Hold.Subject.USER, request.user.pk).order_by("placed_at").first()
    if hold is not None:
        raise NotAllowed(
            f"Your account is held, so nothing was changed. The reason: {hold.reason}", code=hold.code,
            remedy=hold.remedy or "Ask the facility’s staff to lift the hold; until then you can read.",
            extra={"hold": hold.kind},
        )  # fmt: skip


def _without_zeros(request: PageRequest, *parts: object) -> None:
    """Keep zero characters from every page: no name holds one, and PostgreSQL fails on them.

    A filter with one is read without it; a thing so named does not exist; a form with one is refused.
    """
    if any("\0" in part for part in parts if isinstance(part, str)):
        raise NotFound("There is nothing at this address.")
    if "%00" in request.META.get("QUERY_STRING", ""):
        query = QueryDict(mutable=True)
        for name, values in request.GET.lists():
            query.setlist(name, [value.replace("\0", "") for value in values])
        request.GET = query  # type: ignore[assignment]
    if any("\0" in value for _, values in request.POST.lists() for value in values):
        raise Invalid("The form holds zero characters.", code="zero_character", remedy="Send text without them.")


def refused(request: HttpRequest, error: DomainError, *, frame: str = "base.html") -> HttpResponse:
    """Return a refusal as a page in the frame: what happened, what to do, and the request's id."""
    context = {
        "status": error.status,
        "title": error.title,
        "what": error.detail,
        "remedy": error.remedy,
        "kind": "caution",
        "request_id": get_contextvars().get("request_id", ""),
        "frame": frame,
        "may_sign_in": frame != "base.html",
    }
    response = render(request, "errors/refused.html", context, status=error.status)
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    return response


def add_refusal(form: BaseForm, error: DomainError) -> None:
    """Put a refusal on the form it answers: on the field in `extra["field"]` where the form has it, else on the whole.

    The form must be bound; what was typed stays.
    """
    field = error.extra.get("field")
    form.add_error(field if field in form.fields else None, error.words)


def _to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """Go to sign-in and come back; a partial request takes the whole window there, to the page it was made from."""
    if getattr(request, "htmx", False):
        here = request.headers.get("HX-Current-URL", "")
        path = "/" + here.split("/", 3)[3] if here.count("/") >= 3 else "/"
        return HttpResponseClientRedirect(redirect_to_login(path).url)
    return redirect_to_login(request.get_full_path())

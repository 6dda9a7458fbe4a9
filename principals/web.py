"""What every page of the browser shares: who is signed in, and refusals as pages or as errors of a form."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.contrib.auth.views import redirect_to_login
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRedirect
from structlog.contextvars import get_contextvars

from portal.core.errors import DomainError, Unauthenticated
from principals.actors import Actor
from principals.models import User
from principals.permissions import actor_for_user

P = ParamSpec("P")


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
            return view(known, *args, **kwargs)
        except Unauthenticated:
            return _to_sign_in(request)
        except DomainError as error:
            return refused(request, error)

    return opened


def refused(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Return a refusal as a page in the frame: what happened, what to do, and the request's id."""
    context = {
        "status": error.status,
        "title": error.title,
        "what": error.detail,
        "remedy": error.remedy,
        "kind": "caution",
        "request_id": get_contextvars().get("request_id", ""),
        "frame": "base.html",
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
    form.add_error(field if field in form.fields else None, f"{error.detail} {error.remedy}".strip())


def _to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """Go to sign-in and come back; a partial request takes the whole window there, to the page it was made from."""
    if getattr(request, "htmx", False):
        here = request.headers.get("HX-Current-URL", "")
        path = "/" + here.split("/", 3)[3] if here.count("/") >= 3 else "/"
        return HttpResponseClientRedirect(redirect_to_login(path).url)
    return redirect_to_login(request.get_full_path())

"""Sign-in by a front (Apache, Open OnDemand) that names the person in a header; and who must first set up more."""

from collections.abc import Callable

import structlog
from django.conf import settings
from django.contrib.auth import login, logout
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from portal.core import problems
from portal.core.errors import DomainError
from portal.core.sign_in import SignIn
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.engine import networks
from principals.sign_in import DUE, settle_roles
from principals.web import refused

log = structlog.get_logger(__name__)

BY_FRONT = "by_front"  # in the session: the login name that the front gave
_WITHOUT_PEOPLE = frozenset({"/healthz", "/readyz", "/favicon.ico"})
_WHILE_DUE = ("/account/second-factor/", "/sign-in/", "/sign-out/", "/theme/")


class SignInMiddleware:
    """Signs in whom the front names, ends their session without it, and leads to what is still due."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if problems.is_api(request) or request.path_info in _WITHOUT_PEOPLE:
            return self.get_response(request)
        if settings.SIGN_IN.by_remote_user and (refusal := _follow_front(request)) is not None:
            return refusal
        if request.session.get(DUE) and not request.path_info.startswith(_WHILE_DUE):
            return redirect("mfa_activate_totp")
        return self.get_response(request)


def _follow_front(request: HttpRequest) -> HttpResponseBase | None:
    """Make the session that of whom the front names; return a refusal where that cannot be."""
    named = named_by_front(request, settings.SIGN_IN)
    before = request.session.get(BY_FRONT)
    if named is None:
        if before is not None:  # such a session lives behind the front alone
            logout(request)
        return None
    if before == named and request.user.is_authenticated and request.user.get_username() == named:
        return None
    logout(request)
    try:
        add = settings.SIGN_IN.unknown == "add"
        person = principal_services.person_named(actor=SYSTEM_ACTOR, login=named, add_unknown=add)
        settle_roles(person, frozenset())
    except DomainError as error:
        log.info("sign_in_refused", code=error.code)
        return refused(request, error, frame="base_bare.html")
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")
    request.session[BY_FRONT] = named
    return None


def named_by_front(request: HttpRequest, choices: SignIn) -> str | None:
    """Return the login name that the front sent: None without one, or from elsewhere; empty where it sent several.

    By the peer's own address, never by X-Forwarded-For, which anybody can write.
    """
    if not networks.is_allowed(str(request.META.get("REMOTE_ADDR", "")), choices.remote_from):
        return None
    values = _values(request, choices.remote_header)
    if not values:
        return None
    return values[0].strip() if len(values) == 1 else ""


def _values(request: HttpRequest, name: str) -> list[str]:
    """Return what was sent under exactly that name: Django reads X_Remote_User as X-Remote-User, a front does not."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        wanted = name.lower().encode()
        return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == wanted]
    value = request.META.get("HTTP_" + name.upper().replace("-", "_"))
    return [] if value is None else [value]

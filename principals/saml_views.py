"""The four addresses of sign-in by SAML."""

import hashlib
import secrets

from allauth.socialaccount.adapter import get_adapter
from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST
from requests import RequestException

from portal.core import throttle
from portal.core.errors import DomainError, TooMany
from portal.core.saml import SAML
from principals import saml
from principals.auth import client_address
from principals.engine.networks import caller_of
from principals.sign_in import let_in, provider_failed
from principals.web import refused

TICKET = "gatehouse_saml"
TICKET_S = 120
_PATH = "/sign-in/saml/"
_TRIES, _WINDOW_S = 100, 300


def _require_set() -> None:
    if not settings.SIGN_IN.saml.is_set:
        raise Http404


def _too_many(request: HttpRequest) -> HttpResponse | None:
    try:
        throttle.check(
            "sign-in-provider", caller_of(client_address(request)), limit=_TRIES, window_s=_WINDOW_S,
            what="tries", remedy="Wait, then try again.",
        )  # fmt: skip
    except TooMany as error:
        return refused(request, error, frame="base_bare.html")
    return None


@require_GET
def start(request: HttpRequest) -> HttpResponse:
    """Go to the provider. Of the address only `next` is read."""
    _require_set()
    if (wait := _too_many(request)) is not None:
        return wait
    try:
        address, asked = saml.ask()
    except (ValueError, OSError, RequestException) as error:
        return provider_failed(request, error)
    provider = get_adapter().get_provider(request, SAML)
    provider.stash_redirect_state(request, "login", request.GET.get("next", ""), state_id=asked)
    return redirect(address)


@csrf_exempt  # the provider's page sends it; what it holds is signed, and `finish` knows who had asked
@require_POST
def acs(request: HttpRequest) -> HttpResponse:
    """Take the provider's answer (assertion consumer service), believe it or not, and go on to `finish`.

    A form from another host comes without our session's cookie, so what was believed waits for the next request,
    two minutes at most, under a ticket that this browser alone gets. Nothing that is not signed is kept.
    """
    _require_set()
    if (wait := _too_many(request)) is not None:
        return wait
    length = request.META.get("CONTENT_LENGTH") or ""  # a browser says it; of what comes in pieces nobody knows
    if not (length.isdecimal() and int(length) <= 2 * saml.MAX_ANSWER_CHARS):
        return provider_failed(request, "size")
    try:
        answer = saml.read_answer(request.POST.get("SAMLResponse", ""))
        if not answer.in_response_to and not settings.SIGN_IN.saml.unasked:
            raise saml.NoProof("unasked")
    except saml.NoProof as error:
        return provider_failed(request, str(error))
    except (ValueError, OSError, RequestException) as error:
        return provider_failed(request, error)
    except DomainError as error:
        return refused(request, error, frame="base_bare.html")
    ticket = secrets.token_urlsafe(32)
    # Where nobody had asked the provider may say where to go; else what it sends along is not read.
    onward = "" if answer.in_response_to else request.POST.get("RelayState", "")
    cache.set(_key(ticket), (answer, onward), TICKET_S)
    response = redirect("saml-finish")
    response.set_cookie(
        TICKET, ticket, max_age=TICKET_S, path=_PATH, secure=settings.HTTPS, httponly=True, samesite="Lax"
    )
    return response


@require_GET
def finish(request: HttpRequest) -> HttpResponse:
    """Let in whoever had asked, from the browser that had."""
    _require_set()
    response = _finish(request)
    response.delete_cookie(TICKET, path=_PATH, samesite="Lax")
    return response


def _finish(request: HttpRequest) -> HttpResponse:
    key = _key(request.COOKIES.get(TICKET, ""))
    kept = cache.get(key)
    if kept is None or not cache.delete(key):
        return provider_failed(request, "no_ticket")
    answer, onward = kept
    if answer.in_response_to:
        provider = get_adapter().get_provider(request, SAML)
        try:
            onward = provider.unstash_redirect_state(request, answer.in_response_to).get("next", "")
        except PermissionDenied:
            return provider_failed(request, "foreign_answer")
    if not url_has_allowed_host_and_scheme(onward, {request.get_host()}, require_https=request.is_secure()):
        onward = ""
    try:
        return let_in(request, answer.claims, provider=SAML, onward=onward)
    except DomainError as error:
        return refused(request, error, frame="base_bare.html")


@require_GET
def metadata(request: HttpRequest) -> HttpResponse:
    """Tell the provider who we are."""
    _require_set()
    try:
        return HttpResponse(saml.own_metadata(), content_type="application/samlmetadata+xml")
    except (ValueError, OSError, RequestException) as error:
        return provider_failed(request, error)


def _key(ticket: str) -> str:
    return f"saml-answer:{hashlib.sha256(ticket.encode()).hexdigest()}"

"""Signing in and out, through us or a provider."""

import unicodedata
from collections.abc import Callable
from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect import views as openid
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from requests import RequestException

from portal.core import throttle
from portal.core.errors import NotAllowed, TooMany
from portal.core.sign_in import OIDC
from principals.auth import client_address
from principals.engine.networks import caller_of
from principals.forms import SignInForm
from principals.sign_in import provider_failed
from principals.web import refused

TRIES = 10
TRIES_FROM_ADDRESS = 100  # a campus may stand behind one address; a spray of names stops here
TRIES_WINDOW_S = 300
_NO_PASSWORDS = NotAllowed(
    "Nobody signs in here with a password.", code="no_local_sign_in", remedy="Go back and take the other way."
)


class SignIn(LoginView):
    """The sign-in page; ten tries in five minutes for one name, a hundred for one address."""

    template_name = "principals/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        choices = settings.SIGN_IN
        # Where it leads was checked by `LoginView`, and is again on the way back.
        onward = self.get_redirect_url()
        query = f"?{urlencode({'next': onward})}" if onward else ""
        providers = []
        if choices.by_oidc:
            url = reverse("openid_connect_login", args=[OIDC])
            providers.append({"name": choices.oidc_name, "url": url + query})
        if choices.saml.is_set:
            providers.append({"name": choices.saml.name, "url": reverse("saml-start") + query})
        return context | {"providers": providers, "local": choices.local, "by_front": choices.by_remote_user}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.SIGN_IN.local:
            return refused(request, _NO_PASSWORDS, frame="base_bare.html")
        # As the form reads it: else one name could be written in many ways, each with tries of its own.
        name = unicodedata.normalize("NFKC", request.POST.get("username", "")).strip().lower()[:64]
        try:
            address = caller_of(client_address(request))
            throttle.check("sign-in", f"{address}:{name}", limit=TRIES, window_s=TRIES_WINDOW_S)
            throttle.check("sign-in-address", address, limit=TRIES_FROM_ADDRESS, window_s=TRIES_WINDOW_S)
        except TooMany as error:
            return self._wait(error)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Go on to the second factor, where the person has one."""
        user = form.get_user()
        record_authentication(self.request, user, "password", reauthenticated=True)
        return perform_login(self.request, user, email_verification="none", redirect_url=self.get_success_url())

    def _wait(self, error: TooMany) -> HttpResponse:
        form: BaseForm = self.get_form()
        form.errors  # noqa: B018 - binds, so that add_error works and nothing typed is lost
        form.errors.clear()
        form.add_error(None, f"Too many tries. Try again in {error.retry_after_s} s.")
        response = self.render_to_response(self.get_context_data(form=form), status=429)
        response["Retry-After"] = str(error.retry_after_s)
        return response


class SignOut(LogoutView):
    """Sign out (POST only)."""


def with_provider(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Go to the provider. Of the address only `next` is read: allauth lets a link ask there whatever its maker likes.

    As another way back, another proof of the code, more scopes, or less of a sign-in (RFC 9700, 4.1 and 4.8).
    """
    request.GET = QueryDict(urlencode({"next": onward}) if (onward := request.GET.get("next", "")) else "")
    return _through(openid.login, request, provider_id)


def back_from_provider(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Come back from the provider, with what proves who it is."""
    return _through(openid.callback, request, provider_id)


def _through(view: Callable[..., HttpResponseBase], request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Call a view of allauth's, which asks the provider: at a bounded pace, and for the provider that is set."""
    if provider_id != OIDC or not settings.SIGN_IN.by_oidc:
        raise Http404
    try:
        throttle.check(
            "sign-in-provider", caller_of(client_address(request)), limit=TRIES_FROM_ADDRESS, window_s=TRIES_WINDOW_S,
            what="tries", remedy="Wait, then try again.",
        )  # fmt: skip
    except TooMany as error:
        return refused(request, error, frame="base_bare.html")
    try:
        return view(request, provider_id)
    except (RequestException, OAuth2Error) as error:
        return provider_failed(request, error)

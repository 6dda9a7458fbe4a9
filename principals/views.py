"""Signing in and out."""

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse

from portal.core import throttle
from portal.core.errors import TooMany
from principals.auth import client_address
from principals.forms import SignInForm

TRIES = 10
TRIES_FROM_ADDRESS = 100  # a campus may stand behind one address; a spray of names stops here
TRIES_WINDOW_S = 300


class SignIn(LoginView):
    """The sign-in page; ten tries in five minutes for one name, a hundred for one address."""

    template_name = "principals/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        name = request.POST.get("username", "")[:64].lower()
        try:
            address = client_address(request)
            throttle.check("sign-in", f"{address}:{name}", limit=TRIES, window_s=TRIES_WINDOW_S)
            throttle.check("sign-in-address", address, limit=TRIES_FROM_ADDRESS, window_s=TRIES_WINDOW_S)
        except TooMany as error:
            return self._wait(error)
        return super().post(request, *args, **kwargs)

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

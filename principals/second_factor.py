"""The second factor: an app that shows codes, and codes for emergencies. The flows are allauth's, the pages ours."""

from typing import Any, cast

from allauth.account.views import ReauthenticateView as PasswordView
from allauth.mfa.base.views import AuthenticateView, IndexView, ReauthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import (
    DownloadRecoveryCodesView,
    GenerateRecoveryCodesView,
    ViewRecoveryCodesView,
)
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from django.contrib.auth.views import redirect_to_login
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from portal.core import throttle
from portal.core.errors import NotAllowed, TooMany
from principals import services as principal_services
from principals.models import User
from principals.permissions import actor_for_user
from principals.sign_in import DUE, is_due
from principals.web import refused

CODES = 5
CODES_WINDOW_S = 300


def _too_many(request: HttpRequest, user: Any) -> HttpResponse | None:
    """Count one try of a person's code; a refusal past the limit, whatever address it comes from."""
    if request.method != "POST":
        return None
    try:
        throttle.check(
            "second-factor", str(user.pk), limit=CODES, window_s=CODES_WINDOW_S, what="codes",
            remedy="Wait, then try the code that the app shows then.",
        )  # fmt: skip
    except TooMany as error:
        return refused(request, error, frame="base_bare.html")
    return None


class Ask(AuthenticateView):
    """Ask for the code at sign-in."""

    template_name = "principals/second_factor/ask.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _too_many(request, self.stage.login.user) or super().post(request, *args, **kwargs)


class _Again:
    """Asks again who it is: pages of sign-in, for somebody who is signed in."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect("sign-in")
        return _too_many(request, request.user) or super().dispatch(request, *args, **kwargs)  # type: ignore[misc]


class PasswordAgain(_Again, PasswordView):
    """Ask for the password again."""

    template_name = "principals/second_factor/again.html"


class CodeAgain(_Again, ReauthenticateView):
    """Ask for the code again."""

    template_name = "principals/second_factor/again.html"


class _Own:
    """A page of the signed-in person's own account, and what is written down of it."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        if not request.user.has_usable_password():
            return refused(request, _NO_PASSWORD)
        return super().dispatch(request, *args, **kwargs)  # type: ignore[misc]


_NO_PASSWORD = NotAllowed(
    "You sign in elsewhere, without a password of this portal.", code="no_password",
    remedy="Your second factor is kept there too: set it up with whoever keeps that account.",
)  # fmt: skip


def _write_down(request: HttpRequest, act: str) -> None:
    user = cast(User, request.user)
    principal_services.record_second_factor(actor=actor_for_user(user), user=user, act=act)


class Overview(_Own, IndexView):
    """What is set up."""

    template_name = "principals/second_factor/overview.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        codes = context["authenticators"].get(Authenticator.Type.RECOVERY_CODES)
        user = self.request.user
        return context | {
            "app": context["authenticators"].get(Authenticator.Type.TOTP),
            "codes_left": len(codes.get_unused_codes()) if codes else 0,
            "required": isinstance(user, User) and is_due(user),
        }


class SetUp(_Own, ActivateTOTPView):
    """Give an app its secret, and see its first code."""

    template_name = "principals/second_factor/set_up.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _too_many(request, request.user) or super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        secret = context["form"].secret
        return context | {
            "required": bool(self.request.session.get(DUE)),
            "secret_in_fours": " ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
        }

    def form_valid(self, form: Form) -> HttpResponse:
        with transaction.atomic():
            response = super().form_valid(form)
            _write_down(self.request, "set_up")
        self.request.session.pop(DUE, None)
        return response


class Remove(_Own, DeactivateTOTPView):
    """Do without."""

    template_name = "principals/second_factor/remove.html"

    def form_valid(self, form: Form) -> HttpResponse:
        with transaction.atomic():
            response = super().form_valid(form)
            _write_down(self.request, "remove")
        return response


class Codes(_Own, ViewRecoveryCodesView):
    """The codes for emergencies that are left."""

    template_name = "principals/second_factor/codes.html"


class NewCodes(_Own, GenerateRecoveryCodesView):
    """Make new codes; the old ones end."""

    template_name = "principals/second_factor/new_codes.html"

    def form_valid(self, form: Form) -> HttpResponse:
        with transaction.atomic():
            response = super().form_valid(form)
            _write_down(self.request, "new_codes")
        return response


class CodesAsText(_Own, DownloadRecoveryCodesView):
    """The codes as a file."""

    template_name = "principals/second_factor/codes.txt"

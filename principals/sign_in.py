"""Our half of django-allauth: it speaks the protocols, we decide who it is and what they may do.

Nobody is made or tied by allauth itself: its table of social accounts stays empty. (Ours: `SignInIdentity`.)
"""

import base64
import hashlib
from typing import Any, NoReturn

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.account.utils import perform_login
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base import AuthError
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal.core.errors import DomainError, NotAllowed, Unauthenticated
from portal.core.sign_in import SignIn
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.auth import client_address
from principals.engine.claims import Claims, both_said, read_claims, roles_of
from principals.models import User
from principals.system_groups import groups_of
from principals.web import refused

log = structlog.get_logger(__name__)

DUE = "second_factor_due"  # in the session of somebody who has yet to set one up


def settle_roles(user: User, groups: frozenset[str]) -> None:
    """Give a person the roles of their groups, where the site says that groups give any, and take those they gave."""
    choices: SignIn = settings.SIGN_IN
    if not (choices.reads_groups or user.roles_from_groups):
        return
    if choices.system_groups:
        groups |= groups_of(user.username)
    principal_services.settle_roles(actor=SYSTEM_ACTOR, user=user, wanted=roles_of(groups, choices.group_roles))


class AccountAdapter(DefaultAccountAdapter):
    """What happens around a sign-in, whichever way it comes."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)

    def get_login_stages(self) -> list[str]:
        return ["allauth.mfa.stages.AuthenticateStage"]

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Say nothing: pages say it themselves."""

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """Send nothing: notices have their own way."""

    def post_login(self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any) -> HttpResponse:
        methods = {record["method"] for record in get_authentication_records(request, user)}
        if isinstance(user, User) and "socialaccount" not in methods:
            settle_roles(user, frozenset())  # a password tells no groups, so what a provider's gave is over
        # A provider asks for its own second factor; we ask those who came by our password alone.
        if methods == {"password"} and isinstance(user, User) and is_due(user):
            request.session[DUE] = True
        return super().post_login(request, user, **kwargs)


def is_due(user: User) -> bool:
    """Say whether the site asks this person for a second factor."""
    offices = user.is_research_computing or user.is_infosec or user.is_auditor
    return bool(settings.SIGN_IN.second_factor == "staff" and offices)


class SocialAdapter(DefaultSocialAccountAdapter):
    """Takes over once the provider has answered."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> NoReturn:
        """Sign the person in, or refuse with a page; allauth's own matching is never reached."""
        try:
            response = self._sign_in(request, sociallogin)
        except DomainError as error:
            log.info("sign_in_refused", code=error.code)
            response = refused(request, error, frame="base_bare.html")
        raise ImmediateHttpResponse(response)

    def _sign_in(self, request: HttpRequest, sociallogin: SocialLogin) -> HttpResponse:
        return let_in(
            request, _claims_of(sociallogin.account.extra_data), provider=sociallogin.account.provider,
            onward=sociallogin.get_redirect_url(request),
        )  # fmt: skip

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> NoReturn:
        if error == AuthError.CANCELLED:
            raise ImmediateHttpResponse(redirect("sign-in"))
        raise ImmediateHttpResponse(provider_failed(request, exception or error))


def let_in(request: HttpRequest, claims: Claims, *, provider: str, onward: str | None) -> HttpResponse:
    """Sign in the person whom a provider's claims mean, and lead them on. Errors: those of `person_behind`."""
    add = settings.SIGN_IN.unknown == "add"
    user = principal_services.person_behind(actor=SYSTEM_ACTOR, claims=claims, add_unknown=add)
    settle_roles(user, claims.groups)
    if request.user.is_authenticated:
        logout(request)
    record_authentication(request, user, "socialaccount", provider=provider)
    return perform_login(request, user, email_verification="none", redirect_url=onward or None)


def provider_failed(request: HttpRequest, why: object) -> HttpResponse:
    """Return the page for a sign-in that the provider did not finish."""
    # Its words come from outside: the kind is enough.
    log.warning("sign_in_failed", kind=type(why).__name__ if isinstance(why, Exception) else str(why))
    problem = Unauthenticated(
        "The provider did not vouch for you, or its answer came too late.", code="provider_failed",
        remedy="Go to the sign-in page and try again; where that is in vain, tell the facility’s staff.",
    )  # fmt: skip
    return refused(request, problem, frame="base_bare.html")


def _claims_of(said: dict[str, Any]) -> Claims:
    """Read the ID token and the answer about the user; both must be of one subject, of the issuer that is set.

    OpenID Connect Core 1.0 §5.3.2: the answer must not be used where its subject is another. Errors: `NotAllowed`.
    """
    choices: SignIn = settings.SIGN_IN
    token, userinfo = said.get("id_token"), said.get("userinfo") or {}
    if not isinstance(token, dict) or token.get("iss") != choices.oidc_issuer:
        raise NotAllowed(
            "The answer was of another issuer than the one that is set.", code="issuer_differs",
            remedy="Staff: GATEHOUSE_OIDC_ISSUER must be the issuer as the provider writes it.",
        )  # fmt: skip
    if userinfo and userinfo.get("sub") != token.get("sub"):
        raise NotAllowed("The provider told of two people.", code="subject_differs", remedy="Sign in again.")
    try:
        return read_claims(
            both_said(token, userinfo),
            issuer=choices.oidc_issuer,
            login_claim=choices.login_claim,
            groups_claim=choices.groups_claim,
        )
    except ValueError as error:
        raise NotAllowed(str(error), code="subject_missing", remedy="Tell the facility’s staff.") from error


class SecondFactorAdapter(DefaultMFAAdapter):
    """Keeps the secrets of second factors sealed with SECRET_KEY: a copy of the database alone opens none."""

    def get_totp_label(self, user: AbstractBaseUser) -> str:
        return str(user)

    def can_delete_authenticator(self, authenticator: Any) -> bool:
        return not is_due(authenticator.user)

    def encrypt(self, text: str) -> str:
        return _seal().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _seal().decrypt(encrypted_text.encode()).decode()


def _seal() -> MultiFernet:
    keys: list[str] = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
    digests = (hashlib.sha256(f"second-factor:{key}".encode()).digest() for key in keys)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])

"""Forms of `principals`."""

from typing import Any

from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django import forms
from django.contrib.auth.forms import AuthenticationForm

from principals.models import User

_WRONG = "That code is wrong, used already, or too old. The app shows a new one every 30 seconds."


class SignInForm(AuthenticationForm):
    """Login name and password."""

    error_messages = {
        "invalid_login": "This login and password do not belong together, or the account is switched off.",
        "inactive": "This account is switched off.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "Login name"


class PasswordAgainForm(forms.Form):
    """The password once more, before something that weighs."""

    password = forms.CharField(
        label="Password", widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True})
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        self.user = user
        super().__init__(*args, **kwargs)

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not self.user.check_password(password):
            raise forms.ValidationError("That is not your password.")
        return password


class _Code(forms.Form):
    """A field for codes, and our words where one is wrong."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["code"]
        field.label = "Code"
        # Codes of apps are digits; those for emergencies too.
        field.widget = forms.TextInput(
            attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "autofocus": True, "maxlength": 12}
        )

    def clean_code(self) -> str:
        try:
            code: str = super().clean_code()  # type: ignore[misc]
        except forms.ValidationError as error:
            raise forms.ValidationError(_WRONG) from error
        return code


class CodeForm(_Code, AuthenticateForm):
    """The second factor at sign-in."""


class CodeAgainForm(_Code, ReauthenticateForm):
    """The second factor once more."""


class NewAppForm(_Code, ActivateTOTPForm):
    """The first code of an app that was just given its secret."""
